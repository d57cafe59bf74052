// Package outbox is the way out of a session: the departing batch and the priority queue behind it.
//
// A message is encoded straight into the departing batch, one append under one lock, as long as the
// batch has room. Only when the peer or the transport does not keep up, messages wait in the queue,
// ordered by priority and fair between pipes, so that an urgent one never waits behind more than
// the batch.
//
// Opens of callers, of which there may be thousands at once, come in without the lock: see
// [Outbox.Enter]. Small Blocks of a stream wait for each other: see [Outbox.PutMore]. Large
// payloads are copied at most once, by their sender, and stand beside the batch: see [Outbox.Lend].
//
// The outbox knows neither wires nor limits. It has at most one writer at a time: Put tells its
// caller to become the writer when there is none, and the writer alternates between [Outbox.Take],
// the Wire and [Outbox.Written] until Take says that nothing is left.
package outbox

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

const (
	// A pipe that has backlogHigh bytes in the queue should wait until they are no more than
	// backlogLow, so that pipes which send all they can share the queue, and the session's limits,
	// evenly.
	backlogHigh = 64 << 10
	backlogLow  = 32 << 10
)

var (
	// ErrClosed is returned by Put after Close.
	ErrClosed = errors.New("outbox: closed")

	// ErrEnded is returned by Put for what must not follow on its pipe: a Block after the end of
	// its direction, anything after a Close.
	ErrEnded = errors.New("outbox: the pipe takes no more")

	// ErrFlood is returned by PutControl and Announce when the peer does not acknowledge what it
	// reads.
	ErrFlood = errors.New("outbox: the peer does not acknowledge what it reads")
)

// TooLargeError is returned by Put for a message whose frame may exceed what the peer accepts.
// Nothing was sent.
type TooLargeError struct {
	Size, Limit int // bytes, of what a frame carries
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes exceeds the peer's limit of %d", e.Size, e.Limit)
}

// Outbox is safe for concurrent use.
type Outbox struct {
	written    func(messages, bytes int) // these are fixed
	dropped    func([]Drop)              // nil if nobody wants to know
	putControl func(message.Control)     // appendControlLocked
	max        int                       // bytes of the largest frame that the peer accepts
	overhead   uint32                    // what a Block costs the peer besides its payload

	writing atomic.Bool // somebody is the writer
	intake  intake

	mu       sync.Mutex
	lends    bool   // fixed
	closed   bool   // guarded by mu, like all below
	halted   bool   // there is no Wire
	expected bool   // somebody will call Claim
	nextID   uint64 // of the next pipe opened here
	batch    []byte // the next to be taken: frames, each behind its length
	lent     *lent  // payloads that belong to batch; nil until there are some
	flying   *lent  // the same of the batch that was taken; belongs to the writer
	holds    amount // messages in batch
	flight   amount // messages that the writer has taken and not yet written
	queue    priority.Queue[Message]
	flushes  flushes
	gone     amount // messages that were dropped and are not yet reported as written
	news     *news  // what has to be told of them; nil if that is nothing
	log      *log   // nil unless what was sent is kept for a resume
	controls controls
}

// amount counts messages and the bytes that they hold.
type amount struct{ messages, bytes int }

func (a *amount) add(m *Message) {
	a.messages++
	a.bytes += int(m.Held)
}

// New returns an Outbox whose first pipe gets firstID and every later one an id larger by two, and
// whose lower priorities get share of the bytes while higher ones are busy. A Block costs the peer
// overhead bytes besides its payload. Both functions are called without a lock: written when
// messages that hold so many bytes in all have been given to the Wire or dropped, dropped, which
// may be nil, with the Blocks and Opens that are dropped at once, in their order.
func New(firstID uint64, maxFrame int, overhead uint32, share float64, written func(messages, bytes int), dropped func([]Drop)) *Outbox {
	o := &Outbox{written: written, dropped: dropped, max: maxFrame, overhead: overhead, nextID: firstID}
	o.putControl = o.appendControlLocked
	o.queue.Guard(share)
	return o
}

// Put accepts m for the pipe of f and keeps no part of it but its Memory. It never blocks. If write
// is true, nobody is writing and that is now the caller's task. The errors are ErrClosed, ErrEnded
// and *TooLargeError; nothing is sent then.
func (o *Outbox) Put(f *Flow, m *Message) (write bool, err error) {
	write, _, err = o.put(f, m, false)
	return write, err
}

// PutMore is Put for one of many small Blocks that follow each other: while the batch has room and
// nobody is writing, it waits there for the next ones. If later is true, the caller has to see to
// it that somebody calls Claim soon.
func (o *Outbox) PutMore(f *Flow, m *Message) (write, later bool, err error) {
	return o.put(f, m, true)
}

// put is PutMore if more Blocks are likely to follow, and else Put.
func (o *Outbox) put(f *Flow, m *Message, more bool) (write, later bool, err error) {
	large := o.tooLarge(m)
	if large == nil {
		o.prepare(m)
	}
	o.mu.Lock()
	defer o.unlock()
	if o.closed {
		return false, false, ErrClosed
	}
	if f.closed || f.ended && m.Type == message.BlockType {
		return false, false, ErrEnded
	}
	if large != nil {
		return false, false, large
	}
	o.admitLocked()
	if m.Pressed && f.thin(m) {
		f.more().tail++
		m.free()
		o.dropLocked(f, m, Thinned)
		return false, false, nil
	}
	if f.rest != nil && (m.Type == message.BlockType || m.Type == message.CloseType) {
		m.Skipped, f.rest.tail = f.rest.tail, 0
	}
	o.acceptLocked(f, m)
	f.closed = f.closed || m.Type == message.CloseType
	f.ended = f.ended || m.End
	if more && o.queue.Len() == 0 && o.roomLocked(m) && !o.writing.Load() {
		later, o.expected = !o.expected, true
		return false, later, nil
	}
	return !o.writing.Swap(true), false, nil
}

// Claim is called by who has come to write what PutMore has left to wait. If write is true, there
// is something, and to write it is now the caller's task.
func (o *Outbox) Claim() (write bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected = false
	return (len(o.batch) > 0 || o.queue.Len() > 0) && !o.writing.Swap(true)
}

// MaxSize returns how many bytes of variable length, payload, message and detail, the peer takes in
// one message.
func (o *Outbox) MaxSize() int { return o.max - HeadSize }

// tooLarge returns an error if the peer would not take m.
func (o *Outbox) tooLarge(m *Message) error {
	if size := m.size(); size > o.MaxSize() {
		return &TooLargeError{Size: size, Limit: o.MaxSize()}
	}
	return nil
}

// acceptLocked lets m depart or wait. If m has entered, neither m nor f may be touched after that:
// they are their caller's again.
func (o *Outbox) acceptLocked(f *Flow, m *Message) {
	if o.queue.Len() == 0 && !o.halted && o.roomLocked(m) {
		// without a Wire, messages wait where they can be taken back and expire
		o.departLocked(f, m)
	} else {
		o.queue.Push(&f.queue, m.move(f, o.flushes.begun), len(m.Payload)+lengthSize)
		f.queued(len(m.Payload))
	}
}

// Room returns a channel that is closed when the pipe of f has room in the queue again, or nil if
// it has. If the Outbox is closed first, it never is. Alone says that nothing of the pipe waits.
func (o *Outbox) Room(f *Flow) (room <-chan struct{}, alone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := f.rest
	if r == nil || r.backlog < backlogHigh {
		return nil, f.queue.Len() == 0
	}
	if r.room == nil {
		r.room = make(chan struct{})
	}
	return r.room, false
}

// Cancel drops what waits of f, for a reason. It reports whether the peer may know of the pipe. If
// not, it never will: its Open is among what was dropped, which unsent says, or is refused with
// ErrEnded if it is still to come. Once its Close was put, nothing is dropped.
func (o *Outbox) Cancel(f *Flow, why Reason) (departed, unsent bool) {
	o.mu.Lock()
	defer o.unlock()
	o.admitLocked()
	if f.departed && f.closed {
		return true, false // its Close goes out
	}
	unsent = o.clearLocked(f, why)
	f.closed = f.closed || !f.departed
	return f.departed, unsent
}

// Finish drops what waits of f, whose pipe the peer has closed, for a reason, and lets nothing
// follow.
func (o *Outbox) Finish(f *Flow, why Reason) {
	o.mu.Lock()
	defer o.unlock()
	o.clearLocked(f, why)
	f.closed = true
}

// End says why Take has returned no batch.
type End uint8

const (
	Idle   End = iota // nothing waits; the caller is the writer no longer
	Last              // the Outbox is closed, and nothing will ever follow; one caller learns that
	Halted            // there is no Wire; the caller stays the writer, and does not write
)

// Take returns the next batch, or nil and why there is none.
func (o *Outbox) Take() (batch []byte, end End) {
	o.mu.Lock()
	defer o.unlock()
	if o.halted {
		o.restLocked()
		return nil, Halted
	}
	for {
		o.admitLocked()
		o.encodeControlsLocked()
		o.fillLocked()
		if len(o.batch) > 0 {
			break
		}
		o.flushes.written()
		o.restLocked()
		if o.closed {
			return nil, Last // the caller stays the writer, so that it alone learns this
		}
		o.writing.Store(false)
		if o.intake.empty() || o.writing.Swap(true) {
			return nil, Idle
		} // else somebody has entered meanwhile, and has still found a writer
	}
	if o.log != nil {
		if count, due := o.log.due(); due {
			o.appendAckLocked(count)
		}
		o.log.add(o.batch, o.holds)
	}
	b := o.batch
	o.flight, o.batch, o.holds = o.holds, nil, amount{}
	if o.lent.size() > 0 {
		o.flying, o.lent = o.lent, o.flying
		o.flying.join(b)
	}
	o.flushes.taken++
	return b, Idle
}

// Written says that batch, as returned by Take, has been given to the Wire, and takes it back.
func (o *Outbox) Written(batch []byte) {
	if o.flying.size() > 0 {
		o.flying.release()
	}
	o.mu.Lock()
	if o.log == nil {
		o.goneLocked(o.flight)
	}
	o.flight = amount{}
	if o.batch == nil && cap(batch) <= largeSize {
		o.batch, batch = batch[:0], nil
	}
	o.flushes.written()
	o.unlock()
	freeBuffer(batch)
}

// Close drops what waits behind the departing batch, adds c as the last frame unless it is nil, and
// makes every later Put fail with ErrClosed. It never blocks; write is as for Put.
func (o *Outbox) Close(c message.Control) (write bool) {
	o.mu.Lock()
	defer o.unlock()
	if o.closed {
		return false
	}
	o.closed = true
	o.acceptAllLocked(o.intake.close())
	if o.log != nil {
		o.goneLocked(o.log.clear())
		o.log, o.flight = nil, amount{}
	}
	for o.queue.Len() > 0 {
		m, _ := o.queue.Pop()
		o.gone.add(&m)
		o.noteLocked(&m, Closed)
		if m.Type == message.OpenType {
			m.Departer.Discard(Closed)
		}
		m.free()
	}
	o.controls = controls{}
	if c != nil {
		o.appendLocked(c)
	}
	return !o.writing.Swap(true)
}

// Waiting returns how many messages wait behind the departing batch.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Len()
}

// goneLocked notes that a is no longer here.
func (o *Outbox) goneLocked(a amount) {
	o.gone.messages += a.messages
	o.gone.bytes += a.bytes
}

// unlock unlocks, and then tells what has been written or dropped meanwhile.
func (o *Outbox) unlock() {
	gone, n := o.gone, o.news
	o.gone, o.news = amount{}, nil
	o.mu.Unlock()
	if gone.messages > 0 {
		o.written(gone.messages, gone.bytes)
	}
	if n != nil {
		o.tell(n)
	}
}
