package wiretest

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// The limits of a sender: bytes that have arrived and are not read, and bytes that were sent and
// are not read.
const (
	mostUnread = 1 << 20
	mostAway   = 64 << 20
)

// flow is the traffic of one connection across a lane: bytes that wait for room in its queue, then
// are in it or in flight, and then have arrived.
type flow struct {
	lane    *lane // these are fixed
	buffer  int   // how many bytes may wait for room in the queue
	packets bool  // bytes that are put together are taken together

	changed sync.Cond // uses the mutex of the lane

	bytes   ring                 // guarded by that, as all below; all bytes put and not taken
	backlog int                  // the last of bytes, which wait for room in the queue
	away    fifo.Queue[delivery] // the parts in the queue or in flight
	arrived int                  // the first of bytes, which can be taken
	sizes   fifo.Queue[int]      // of the packets that have arrived
	calm    time.Duration        // after a loss, no further segment is lost before this time
	ended   bool                 // put is closed
	over    bool                 // the end has arrived
	deaf    bool                 // take is closed
	putErr  error                // why putting fails
	takeErr error                // why taking fails
	putBy   time.Duration        // when putting fails
	takeBy  time.Duration        // when taking fails
	writing bool                 // a put is in progress
	putting int                  // how many wait to put
	taking  int                  // how many wait to take
}

// delivery is the number of bytes that arrive at one time; 0 is the end.
type delivery struct {
	n   int
	due time.Duration
}

// put sends b and keeps no part of it. It waits until no more than f.buffer bytes wait for room.
func (f *flow) put(b []byte) (n int, err error) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	for f.writing && f.refusalLocked(f.putErr, f.putBy) == nil {
		f.changed.Wait() // the put in progress ensures that all are woken in time
	}
	if err := f.refusalLocked(f.putErr, f.putBy); err != nil {
		return 0, err
	}
	f.writing = true
	defer func() {
		f.writing = false
		f.changed.Broadcast()
	}()
	for {
		k := f.handOverLocked(b[n:])
		if n += k; n == len(b) {
			return n, nil
		}
		if err := f.refusalLocked(f.putErr, f.putBy); err != nil {
			return n, err
		}
		if k == 0 {
			f.waitToPutLocked()
		}
	}
}

// handOverLocked takes as much of b as there is room for.
func (f *flow) handOverLocked(b []byte) int {
	if f.deaf {
		return len(b)
	}
	now := f.lane.now()
	f.lane.advanceLocked(now)
	b = b[:max(0, min(len(b), f.buffer-f.backlog))]
	if len(b) > 0 {
		f.bytes.write(b)
		f.backlog += len(b)
		f.lane.admitLocked(now)
		f.lane.touchLocked(f, now)
	}
	return len(b)
}

// offer sends a packet, or loses it if the queue is full.
func (f *flow) offer(packet []byte) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.deaf {
		return
	}
	now, n := l.now(), len(packet)
	l.advanceLocked(now)
	f.landLocked(now)
	if f.fullLocked() || l.done.Queued > 0 && l.done.Queued+n > l.room {
		l.done.Dropped++
		return
	}
	f.bytes.write(packet)
	f.backlog += n
	l.sendLocked(f, n, now)
	l.touchLocked(f, now)
}

// finish puts the end behind all bytes. Later puts fail with err.
func (f *flow) finish(err error) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	if f.ended {
		return
	}
	now := f.lane.now()
	f.lane.advanceLocked(now)
	f.ended, f.putErr = true, err
	f.endLocked(now)
	f.lane.touchLocked(f, now)
	f.changed.Broadcast()
}

// endLocked sends the end when it is due.
func (f *flow) endLocked(at time.Duration) {
	if f.ended && f.backlog == 0 && !f.deaf {
		f.lane.sendLocked(f, 0, at)
	}
}

// deafen drops all bytes, queued and future. Later takes fail with err.
func (f *flow) deafen(err error) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.deaf, f.takeErr = true, err
	f.bytes, f.backlog, f.arrived = ring{}, 0, 0
	f.away.Reset()
	f.lane.removeLocked(f)
	f.changed.Broadcast()
}

// offerLocked returns how many bytes are to enter the queue next.
func (f *flow) offerLocked(at time.Duration) int {
	if f.landLocked(at); f.fullLocked() {
		return 0
	}
	return min(f.backlog, f.lane.pieceLocked(at))
}

// fullLocked reports whether the flow is at its limit until bytes are taken.
func (f *flow) fullLocked() bool { return f.arrived >= mostUnread || f.bytes.n-f.backlog >= mostAway }

// departLocked records that n bytes, or the end, have entered the queue, and when they arrive.
func (f *flow) departLocked(n int, due time.Duration) {
	f.backlog -= n
	f.away.Push(delivery{n, due})
}

// landLocked moves due arrivals to the received bytes, in order.
func (f *flow) landLocked(now time.Duration) {
	for f.away.Len() > 0 && f.away.Peek().due <= now {
		n := f.away.Pop().n
		f.arrived += n
		switch {
		case n == 0:
			f.over = true
		case f.packets:
			f.sizes.Push(n)
		}
	}
}

// take waits for bytes to arrive and moves them to p: as many as there are, or a packet. It returns
// io.EOF at the end.
func (f *flow) take(p []byte) (int, error) {
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := f.refusalLocked(f.takeErr, f.takeBy); err != nil {
			return 0, err
		}
		now := l.now()
		l.advanceLocked(now)
		f.landLocked(now)
		if f.arrived > 0 {
			return f.moveLocked(p, now), nil
		}
		if f.over {
			return 0, io.EOF
		}
		f.waitToTakeLocked()
	}
}

// moveLocked moves received bytes to p.
func (f *flow) moveLocked(p []byte, now time.Duration) int {
	full := f.fullLocked()
	n := min(f.arrived, len(p))
	if f.packets {
		n = f.sizes.Pop() // p is long enough
	}
	f.bytes.read(p[:n])
	f.arrived -= n
	if full && !f.fullLocked() {
		f.lane.admitLocked(now)
		f.lane.touchLocked(f, now)
	}
	return n
}

// finished reports whether the end has arrived.
func (f *flow) finished() bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	now := f.lane.now()
	f.lane.advanceLocked(now)
	f.landLocked(now)
	return f.over
}

// unheard reports whether take is closed.
func (f *flow) unheard() bool {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	return f.deaf
}

// setDeadline sets the deadline of put or take; where is one of the two.
func (f *flow) setDeadline(where *time.Duration, t time.Time) {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	*where = never
	if !t.IsZero() {
		*where = t.Sub(f.lane.begin)
	}
	f.changed.Broadcast()
}

// waitToPutLocked waits for a change, or until put may continue.
func (f *flow) waitToPutLocked() {
	now := f.lane.now()
	f.lane.setAlarmLocked(f.putAtLocked(now), now)
	f.putting++
	f.changed.Wait()
	f.putting--
}

// waitToTakeLocked waits for a change, or until take may continue.
func (f *flow) waitToTakeLocked() {
	now := f.lane.now()
	f.lane.setAlarmLocked(f.takeAtLocked(now), now)
	f.taking++
	f.changed.Wait()
	f.taking--
}

// wakeLocked returns the earliest time at which a waiting goroutine may continue.
func (f *flow) wakeLocked(now time.Duration) time.Duration {
	at := never
	if f.putting > 0 {
		at = min(at, f.putAtLocked(now))
	}
	if f.taking > 0 {
		at = min(at, f.takeAtLocked(now))
	}
	return at
}

// putAtLocked returns the earliest time at which put may continue.
func (f *flow) putAtLocked(now time.Duration) time.Duration {
	if f.backlog < f.buffer {
		return now
	}
	return min(f.putBy, f.lane.nextLocked())
}

// takeAtLocked returns the earliest time at which take may continue.
func (f *flow) takeAtLocked(now time.Duration) time.Duration {
	f.landLocked(now)
	switch {
	case f.arrived > 0 || f.over:
		return now
	case f.away.Len() > 0:
		return min(f.takeBy, f.away.Peek().due)
	case f.backlog > 0:
		return min(f.takeBy, f.lane.nextLocked())
	}
	return f.takeBy
}

// refusalLocked returns the error that prevents the operation, or nil.
func (f *flow) refusalLocked(err error, by time.Duration) error {
	if err == nil && by <= f.lane.now() {
		return os.ErrDeadlineExceeded
	}
	return err
}
