package outbox

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

// Put accepts m for the pipe of f, and keeps only m.Memory of it. It never blocks. If write is
// true, there was no writer, and the caller must now write what the Outbox has. The errors are
// ErrClosed, ErrEnded, ErrNoOpens and *TooLargeError; nothing is sent then.
func (o *Outbox) Put(f *Flow, m *Message) (write bool, err error) {
	write, _, err = o.put(f, m, false)
	return write, err
}

// PutMore is Put for one of many small Blocks that follow each other. While the batch has room and
// there is no writer, the Block waits in the batch for the next ones. If later is true, the caller
// has to ensure that Claim is called soon.
func (o *Outbox) PutMore(f *Flow, m *Message) (write, later bool, err error) {
	return o.put(f, m, true)
}

// put is PutMore if more is true, and Put otherwise.
func (o *Outbox) put(f *Flow, m *Message, more bool) (write, later bool, err error) {
	large := o.CheckSize(m)
	if large == nil {
		o.prepare(m)
	}
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked() // the Opens in the intake may include that of the pipe
	next, ok := f.state.next(m.event())
	switch {
	case o.writer.current().closed():
		return false, false, ErrClosed
	case !ok:
		return false, false, ErrEnded
	case m.Type == message.OpenType && o.noOpens:
		return false, false, ErrNoOpens
	case large != nil:
		return false, false, large
	}
	if m.Pressed && f.thin(m) {
		f.droppedAtTail(1)
		m.free()
		o.dropLocked(f, m, Thinned)
		return false, false, nil
	}
	f.tellTailGap(m)
	f.state = next // before an Open departs, or is dropped
	o.departOrWaitLocked(f, m)
	if more && o.queue.len() == 0 && o.batch.fits(m) {
		// an announced writer has to come, even if an Open put by Enter wakes the writer meanwhile
		if was, later := o.writer.to(announce); !was.present() {
			return false, later, nil
		}
	}
	return o.writer.become(), false, nil
}

// Claim is called by the announced writer of the Blocks that PutMore has left waiting. If write is
// true, there are messages to write, and the caller has become the writer.
func (o *Outbox) Claim() (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writer.to(come)
	return (!o.batch.empty() || o.queue.len() > 0) && o.writer.become()
}

// Enter is Put for an Open, without the lock, on a flow that gets no other message. The Outbox owns
// f until Finish has returned, and m until Depart or Discard is called, or Cancel or Finish has
// returned. The only error is *TooLargeError.
func (o *Outbox) Enter(f *Flow, m *Message) (write bool, err error) {
	if err := o.CheckSize(m); err != nil {
		return false, err
	}
	o.prepare(m)
	m.flow, f.reference = f, untilOpenLeaves
	first, refused := o.intake.push(m)
	if refused {
		m.free()
		o.mu.Lock()
		defer o.unlock()
		o.dropLocked(f, m, Closed)
		return false, nil
	}
	// The first caller finds a writer or becomes the writer, and the other callers rely on that. A
	// writer that finds nothing to write checks the intake once more after it has given up its
	// role: see Take.
	return first && o.writer.become(), nil
}

// Room returns a channel that is closed when the pipe of f has room in the queue again, or nil if
// it has room now. After a Close of the Outbox the channel may never be closed.
func (o *Outbox) Room(f *Flow) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.room()
}

// Cancel drops the queued messages of f, and reports them with the reason why. departed reports
// that the peer may know the pipe. Otherwise the peer never will, and a later Open fails with
// ErrEnded. unsent reports that the Open was dropped. If the peer knows the pipe in that case, some
// parts of the Open were sent, and the peer is informed that no further part follows. If the Open
// has departed and the Close was put, Cancel drops nothing.
func (o *Outbox) Cancel(f *Flow, why Reason) (departed, unsent bool) {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	if f.state != closing {
		o.stopLocked(f)
		unsent = o.clearLocked(f, why)
	}
	f.apply(cancel)
	return f.state.departed(), unsent
}

// Finish drops the queued messages of f, because the peer has closed the pipe or the call is over,
// and rejects later ones. It reports them with the reason why. After Finish, the Outbox does not
// refer to f any more. unsent reports that the Open, or the rest of its parts, was dropped.
func (o *Outbox) Finish(f *Flow, why Reason) (unsent bool) {
	if f.Released() {
		return false
	}
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	return o.finishLocked(f, why)
}

// FinishPipe is Finish for a pipe that the peer has closed and that only the Outbox still knows,
// because its last message is partly sent. Without such a message it has no effect.
func (o *Outbox) FinishPipe(id uint64, why Reason) {
	o.mu.Lock()
	defer o.unlock()
	if o.fragmented == nil {
		return
	}
	if f := o.fragmented.find(id); f != nil {
		o.finishLocked(f, why)
	}
}

func (o *Outbox) finishLocked(f *Flow, why Reason) (unsent bool) {
	o.forgetPartsLocked(f) // the peer accepts no further frame of the pipe, not even for its parts
	unsent = o.clearLocked(f, why)
	f.apply(finish)
	return unsent
}

// EndOpens rejects further Opens: Put returns ErrNoOpens, and an Open put by Enter is discarded as
// Ended. Earlier Opens are sent.
func (o *Outbox) EndOpens() {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	o.noOpens = true
}

// Close drops the queued messages, adds c as the last frame unless it is nil, and makes every later
// Put fail with ErrClosed. It never blocks. write is as for Put.
func (o *Outbox) Close(c message.Control) (write bool) {
	o.mu.Lock()
	defer o.unlock()
	was, closes := o.writer.to(end)
	if !closes {
		return false
	}
	o.admitAllLocked(o.intake.close())
	if o.log != nil {
		o.deferred.gone.join(o.log.clear())
		o.log, o.flight = nil, amount{}
	}
	o.discardLocked()
	o.controls = controls{}
	if c != nil {
		o.appendLocked(c)
	}
	return !was.present()
}

// CheckSize returns an error if m exceeds the limit of the peer, and nil otherwise.
func (o *Outbox) CheckSize(m *Message) *TooLargeError {
	if size := m.size(); size > o.MaxSize() {
		return &TooLargeError{Size: size, Limit: o.MaxSize()}
	}
	return nil
}

// prepare copies a large payload that is to be lent. It runs before the lock is taken, so that no
// other caller waits for the copy.
func (o *Outbox) prepare(m *Message) {
	if o.lends && len(m.Payload) >= leastLent && o.writer.current().present() || len(m.Payload) > message.MaxPart {
		m.own()
	}
}

// admitLocked moves all Opens from the intake into the batch or the queue.
func (o *Outbox) admitLocked() {
	if !o.intake.empty() {
		o.admitAllLocked(o.intake.take())
	}
}

// admitAllLocked moves m, and the Opens that entered after it, into the batch or the queue.
func (o *Outbox) admitAllLocked(m *Message) {
	for m != nil {
		f, next := m.flow, m.older // its caller owns m again after it has departed
		m.older = nil
		switch _, ok := f.state.next(putOpen); {
		case o.writer.current().closed():
			m.free()
			o.dropLocked(f, m, Closed)
		case !ok: // it was cancelled
			m.free()
			o.deferred.gone.add(m)
		case o.noOpens:
			m.free()
			o.dropLocked(f, m, Ended)
		default:
			o.departOrWaitLocked(f, m)
		}
		m = next
	}
}

// departOrWaitLocked moves m into the batch or the queue. Without a Wire, and while the gate is
// closed, every message waits in the queue: there it can be cancelled, and can expire. If m was put
// by Enter, neither m nor f may be accessed afterwards.
func (o *Outbox) departOrWaitLocked(f *Flow, m *Message) {
	if o.queue.len() == 0 && !o.writer.current().halted() && o.batch.fits(m) && o.window.allows(o.batch.size()) && !m.divided(o.partLocked()) {
		o.departLocked(f, m)
	} else {
		o.queue.push(f, m, o.flushes.begun)
	}
}

// intake is a queue for Opens that needs no lock. Many callers put Opens. Once a caller has waited
// for a mutex for long, Go hands the mutex from one goroutine to the next, with a switch each time.
// The writer takes all Opens of the intake, in order of arrival.
type intake struct {
	// noMore after close; all methods but push need the lock of the Outbox
	newest atomic.Pointer[Message]
}

// noMore marks a closed intake.
var noMore = new(Message)

// push adds m, and reports whether the intake was empty. After close it refuses m.
func (i *intake) push(m *Message) (first, refused bool) {
	for {
		older := i.newest.Load()
		if older == noMore {
			return false, true
		}
		m.older = older
		if i.newest.CompareAndSwap(older, m) {
			return older == nil, false
		}
	}
}

func (i *intake) empty() bool {
	m := i.newest.Load()
	return m == nil || m == noMore
}

// take removes all Opens and returns the oldest. Its older field leads to the later ones. The
// intake must be neither empty nor closed.
func (i *intake) take() (oldest *Message) { return reversed(i.newest.Swap(nil)) }

// close is take, and makes push refuse further Opens.
func (i *intake) close() (oldest *Message) { return reversed(i.newest.Swap(noMore)) }

// reversed reverses the list that begins with m, the newest, and returns the oldest.
func reversed(m *Message) (oldest *Message) {
	for m != nil {
		m, m.older, oldest = m.older, oldest, m
	}
	return oldest
}

// messageQueue is the messages that wait behind the departing batch. They share their memory with
// no other code.
type messageQueue struct{ order priority.Queue[Message] }

func (q *messageQueue) len() int { return q.order.Len() }

// push appends m to f. flush is the number of flushes begun.
func (q *messageQueue) push(f *Flow, m *Message, flush uint32) {
	q.order.Push(&f.queue, m.move(f, flush), m.size()+lengthSize)
	f.queued(len(m.Payload))
}

// take removes the next message if its last bytes are sent: see [priority.Queue].
func (q *messageQueue) take(most int, leaves func(m *Message, size int) int) (m Message, all bool) {
	m, all = q.order.Take(most, leaves)
	if all {
		m.flow.dequeued(len(m.Payload))
	}
	return m, all
}

// urgent removes the next message of the highest priority, if messages of lower ones wait and may
// returns true.
func (q *messageQueue) urgent(may func(m *Message, size int) bool) (m Message, ok bool) {
	m, ok = q.order.PopUrgent(may)
	if ok {
		m.flow.dequeued(len(m.Payload))
	}
	return m, ok
}

// clear removes the messages of f, and passes each to drop.
func (q *messageQueue) clear(f *Flow, drop func(Message)) {
	q.order.Clear(&f.queue, drop)
	f.allDequeued()
}

// discard removes all messages, and passes each to drop. A caller that waits for room keeps
// waiting, and has to learn of the end elsewhere.
func (q *messageQueue) discard(drop func(Message)) {
	for q.order.Len() > 0 {
		m, _ := q.order.Pop()
		drop(m)
	}
}

// thin judges every Block that has not been judged yet, removes those to be dropped, and passes
// each to drop.
func (q *messageQueue) thin(drop func(*Message)) {
	gaps := make(map[*Flow]uint64) // Blocks dropped since the last one kept
	q.order.Filter(func(m *Message) bool {
		f := m.flow
		if f.thin(m) {
			gaps[f] += 1 + m.Skipped
			f.dequeued(len(m.Payload))
			drop(m)
			return false
		}
		if m.tellsGaps() {
			m.Skipped += gaps[f]
			delete(gaps, f)
		}
		return true
	})
	for f, n := range gaps {
		f.droppedAtTail(n)
	}
}
