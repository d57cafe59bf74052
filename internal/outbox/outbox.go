// Package outbox implements the outbound side of a session: the departing batch, and the priority
// queue behind it.
//
// While the batch has room, a message is encoded straight into it, by one append under one lock.
// Messages wait in the queue only when the peer or the transport does not keep up. The queue is
// ordered by priority and fair between pipes, so that an urgent message never waits behind more
// than the batch.
//
// Thousands of callers may open pipes at once. Their Opens are put without the lock: see
// [Outbox.Enter]. Small Blocks of a stream wait for each other: see [Outbox.PutMore]. Large
// payloads are copied at most once, by their sender, and are kept outside of the batch: see
// [Outbox.Lend].
//
// The Outbox does not know wires or limits. It has at most one writer at a time. If there is none,
// the caller of Put becomes the writer, which Put reports. The writer alternates between
// [Outbox.Take], the Wire and [Outbox.Written] until Take returns no batch.
//
// Only the Outbox has a lock. Its parts have none, and do not know each other: the batch, the
// queue, the gate, the controls, the flushes, the log of sent frames, and the pending reports. The
// intake needs no lock.
package outbox

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/asterisque-go/asterisque/codec/message"
)

var (
	// ErrClosed is returned by Put after Close.
	ErrClosed = errors.New("outbox: closed")

	// ErrNoOpens is returned by Put for an Open after EndOpens.
	ErrNoOpens = errors.New("outbox: no pipe is opened any more")

	// ErrEnded is returned by Put for a message that must not follow on its pipe: a Block after the
	// end of its direction, or any message after a Close.
	ErrEnded = errors.New("outbox: the pipe takes no more")

	// ErrFlood is returned by PutControl and Announce when the peer does not acknowledge received
	// frames.
	ErrFlood = errors.New("outbox: the peer does not acknowledge what it reads")
)

// TooLargeError is returned by Put for a message with a frame that may exceed the limit of the
// peer. Nothing was sent.
type TooLargeError struct {
	Size, Limit int // bytes of the fields of variable length
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes exceeds the peer's limit of %d", e.Size, e.Limit)
}

// Outbox holds the messages of a session that wait to be sent. It is safe for concurrent use.
type Outbox struct {
	written    func(messages, bytes int) // fixed, as are the next five
	dropped    func([]Drop)              // nil without a callback for drops
	putControl func(message.Control)     // appendLocked, for Controls
	max        int                       // bytes of the largest frame that the peer accepts
	overhead   uint32                    // cost of a Block to the peer besides its payload
	lends      bool                      // see Lend

	inflight *segments // belongs to the writer: lent payloads of the batch it has taken

	writer writer // writer and intake need no lock for some operations
	intake intake

	mu         sync.Mutex
	nextID     uint64         // of the next pipe opened here; guarded by mu, like all below
	noOpens    bool           // see EndOpens
	part       int            // bytes of the largest part of a message, see Divide
	fragmented *fragmented    // the messages that are partly sent; nil until there is one
	batch      batch          // sent next
	window     inflightWindow // limits the bytes in flight
	flight     amount         // messages that the writer has taken and not yet written
	queue      messageQueue   // the messages that wait behind the batch
	controls   controls
	flushes    flushes
	log        *resendLog // nil unless sent frames are kept for a resume
	deferred   deferred   // reports to deliver after mu is released
}

// deferred is the reports to deliver after the lock is released.
type deferred struct {
	gone  amount           // messages that were written or dropped
	drops *droppedMessages // nil if there are none
}

// New returns an Outbox. Its first pipe gets the id firstID, and every later one an id larger by
// two. Lower priorities get share of the bytes while higher ones are busy. A Block costs the peer
// overhead bytes besides its payload.
//
// Both functions are called without a lock. written is called when messages of the given bytes in
// all have been written to the Wire or dropped. dropped, which may be nil, is called with the
// Blocks and Opens that are dropped at once, in their order.
func New(firstID uint64, maxFrame int, overhead uint32, share float64, written func(messages, bytes int), dropped func([]Drop)) *Outbox {
	o := &Outbox{written: written, dropped: dropped, max: maxFrame, overhead: overhead, nextID: firstID}
	o.batch.most = batchSize
	o.putControl = func(c message.Control) { o.appendLocked(c) }
	o.part = math.MaxInt - lengthSize
	o.queue.order.Guard(share)
	return o
}

// Lend enables lending: large payloads in memory of their own, where there are buffers for their
// size, are not copied into the batch. Then the writer has to call [Outbox.Segments] after each
// Take. Lend is called before any other method, and not together with Keep.
func (o *Outbox) Lend() { o.lends = true }

// MaxSize returns the largest size that the peer accepts for the fields of variable length in one
// message: payload, message and detail.
func (o *Outbox) MaxSize() int { return o.max - HeadSize }

// Waiting returns the number of messages that wait behind the departing batch.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.len()
}

// appendLocked encodes a frame that is not counted at the end of the departing batch.
func (o *Outbox) appendLocked(f frame) {
	at := o.batch.append(f)
	if o.log != nil {
		o.log.appended(o.batch.frames, at)
	}
}

// unlock releases the lock, and then reports the messages that were written or dropped meanwhile.
func (o *Outbox) unlock() {
	n := o.deferred
	o.deferred = deferred{}
	o.mu.Unlock()
	if n.gone.messages > 0 {
		o.written(n.gone.messages, n.gone.bytes)
	}
	if n.drops != nil {
		n.drops.tell(o.dropped)
	}
}

// dropsLocked returns the pending reports of drops, creating them if necessary.
func (o *Outbox) dropsLocked() *droppedMessages {
	if o.deferred.drops == nil {
		o.deferred.drops = new(droppedMessages)
	}
	return o.deferred.drops
}
