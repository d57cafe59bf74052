package wiretest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	kib      = 1 << 10 // bytes that share their jitter
	underWay = 1 << 20 // bytes that a line with a delay holds before writing waits
)

// errCut and errTruncated are the errors of a line that ends at a position of its faults.
var (
	errCut       = fmt.Errorf("wiretest: the connection was cut: %w", syscall.ECONNRESET)
	errTruncated = errors.New("wiretest: the connection was truncated")
)

// faultyLine is one direction of a faulty connection. Bytes are put in at one end and taken from
// the other: later, altered, or never.
type faultyLine struct {
	faults Direction // these are fixed
	dice   seededChance
	room   int64 // how many bytes may be in flight when put returns

	mu      *sync.Mutex // these are of the connection, and lock themselves
	changed *sync.Cond  // uses mu; signals each change of the fields below

	queue  []packet  // guarded by mu, as all below; the packets in flight
	sent   int64     // how many bytes have been put
	taken  int64     // how many of them have been taken
	passed int64     // how many of these have arrived at their destination
	free   time.Time // when all taken bytes have passed, by the bandwidth

	writing  bool  // a put is in progress
	begin    int64 // value of sent when it began
	stalled  bool
	resumed  bool // StallAfter is over
	vanished bool // nothing arrives any more

	putErr, takeErr error // the errors of further puts and takes
	putBy, takeBy   time.Time
}

// packet is a part of the bytes in flight, or the end behind them.
type packet struct {
	b   []byte
	due time.Time // it arrives then, or after earlier packets
	end error     // the final error for the taker at this position
}

// put sends b and keeps no part of it. It waits until no more than l.room bytes are in flight.
func (l *faultyLine) put(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing && refusal(l.putErr, l.putBy) == nil {
		l.waitLocked(l.putBy)
	}
	if err := refusal(l.putErr, l.putBy); err != nil {
		return 0, err
	}
	l.writing, l.begin = true, l.sent
	defer func() {
		l.writing = false
		l.changed.Broadcast()
	}()
	l.sendLocked(b)
	for !l.vanished {
		all := l.sent == l.begin+int64(len(b)) // or Close has recalled some
		if all && l.sent-l.passed <= l.room {
			break
		}
		if err := refusal(l.putErr, l.putBy); err != nil {
			return l.recallLocked(), err
		}
		l.waitLocked(l.putBy)
	}
	return len(b), nil
}

// sendLocked puts a copy of b into flight.
func (l *faultyLine) sendLocked(b []byte) {
	if l.vanished {
		return
	}
	b = append([]byte(nil), b...)
	for len(b) > 0 {
		n := len(b)
		if l.faults.Jitter > 0 {
			n = min(n, kib-int(l.sent%kib))
		}
		l.queue = append(l.queue, packet{b: b[:n], due: l.dueLocked()})
		l.sent += int64(n)
		b = b[n:]
	}
	l.changed.Broadcast()
}

// dueLocked returns the arrival time of bytes sent now.
func (l *faultyLine) dueLocked() time.Time {
	return time.Now().Add(l.faults.latency(l.dice, l.sent/kib))
}

// recallLocked takes back the bytes of the current put that were not taken, and returns how many
// cannot be taken back.
func (l *faultyLine) recallLocked() int {
	keep := max(l.begin, l.taken)
	for extra := l.sent - keep; extra > 0 && len(l.queue) > 0; {
		p := &l.queue[len(l.queue)-1]
		n := min(int64(len(p.b)), extra)
		extra -= n
		if p.b = p.b[:int64(len(p.b))-n]; len(p.b) == 0 {
			l.queue = l.queue[:len(l.queue)-1]
		}
	}
	l.sent = keep
	return int(keep - l.begin)
}

// finishLocked puts the end into flight: it arrives behind all bytes.
func (l *faultyLine) finishLocked(end error) {
	l.queue = append(l.queue, packet{due: l.dueLocked(), end: end})
	l.changed.Broadcast()
}

// take waits for bytes to arrive and moves them to p. They have passed when arrived is called. The
// error may be errCut or errTruncated, which the caller handles.
func (l *faultyLine) take(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := refusal(l.takeErr, l.takeBy); err != nil {
			return 0, err
		}
		at, err := l.nextLocked(len(p))
		if err != nil {
			return 0, err
		}
		if !at.IsZero() && !at.After(time.Now()) {
			if end := l.queue[0].end; end != nil {
				return 0, end
			}
			l.free = at
			return l.moveLocked(p), nil
		}
		l.waitLocked(earlier(at, l.takeBy))
	}
}

// nextLocked returns when the next packet, or part of it, or the end has passed. The zero time
// means not yet known.
func (l *faultyLine) nextLocked(most int) (time.Time, error) {
	if reached(l.faults.VanishAfter, l.taken) && !l.vanished {
		l.vanishLocked()
	}
	if reached(l.faults.StallAfter, l.taken) && !l.resumed {
		l.stalled = true
	}
	switch {
	case l.vanished || l.stalled:
		return time.Time{}, nil
	case reached(l.faults.CutAfter, l.taken):
		return time.Time{}, errCut
	case reached(l.faults.TruncateAfter, l.taken):
		return time.Time{}, errTruncated
	case len(l.queue) == 0:
		return time.Time{}, nil
	}
	begin := l.queue[0].due
	if begin.Before(l.free) {
		begin = l.free
	}
	return begin.Add(l.faults.transmission(l.sizeLocked(most))), nil
}

// sizeLocked returns how many bytes pass next.
func (l *faultyLine) sizeLocked(most int) int {
	return l.faults.until(l.taken, min(len(l.queue[0].b), most, l.faults.piece()))
}

// moveLocked moves the next bytes to p.
func (l *faultyLine) moveLocked(p []byte) int {
	first := &l.queue[0]
	n := copy(p, first.b[:l.sizeLocked(len(p))])
	if i := l.faults.CorruptAt - 1 - l.taken; 0 <= i && i < int64(n) {
		p[i] ^= 1 << (l.dice.roll(0) % 8)
	}
	if first.b = first.b[n:]; len(first.b) == 0 {
		l.queue = l.queue[1:]
	}
	l.taken += int64(n)
	return n
}

// emptyLocked returns when all bytes in flight have arrived, without further faults.
func (l *faultyLine) emptyLocked() time.Time {
	last := l.free
	for _, p := range l.queue {
		if p.due.After(last) {
			last = p.due
		}
	}
	return last.Add(l.faults.transmission(int(l.sent - l.taken)))
}

// arrived records that all taken bytes have arrived.
func (l *faultyLine) arrived() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = l.taken
	l.changed.Broadcast()
}

// vanishLocked loses the bytes in flight, and all later ones.
func (l *faultyLine) vanishLocked() {
	l.vanished = true
	l.queue = nil
	l.taken, l.passed = l.sent, l.sent
	l.changed.Broadcast()
}

// resumeLocked ends a stall. Bandwidth that was not used meanwhile is lost.
func (l *faultyLine) resumeLocked() {
	if l.stalled {
		l.stalled = false
		l.resumed = reached(l.faults.StallAfter, l.taken)
		if now := time.Now(); l.free.Before(now) {
			l.free = now
		}
		l.changed.Broadcast()
	}
}

// failLocked sets the errors of both ends of the line, unless they are set, and drops the bytes in
// flight.
func (l *faultyLine) failLocked(putErr, takeErr error) {
	if l.putErr == nil {
		l.putErr = putErr
	}
	if l.takeErr == nil {
		l.takeErr = takeErr
	}
	l.queue = nil
	l.changed.Broadcast()
}

// waitLocked waits for a change, at most until then if that is not zero.
func (l *faultyLine) waitLocked(then time.Time) {
	if !then.IsZero() {
		defer time.AfterFunc(time.Until(then), l.wake).Stop()
	}
	l.changed.Wait()
}

// wake takes the lock, so that a goroutine which is about to wait does so first.
func (l *faultyLine) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Broadcast()
}

// reached reports whether n bytes reach a position.
func reached(place, n int64) bool { return place > 0 && n >= place }

// refusal returns the error that prevents the operation, or nil.
func refusal(err error, by time.Time) error {
	if err == nil && !by.IsZero() && !time.Now().Before(by) {
		return os.ErrDeadlineExceeded
	}
	return err
}

// earlier returns the earlier of two times, either of which may be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
