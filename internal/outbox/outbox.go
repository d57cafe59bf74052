// Package outbox is the way out of a session: the departing batch and the priority queue behind it.
//
// A message is encoded straight into the departing batch, one append under one lock, as long as the
// batch has room. Only when the peer or the transport does not keep up, messages wait in the queue,
// ordered by priority and fair between pipes, so that an urgent one never waits behind more than
// the batch.
//
// Thousands of callers may open pipes at once. Their Opens come in without the lock: see
// [Outbox.Enter]. Small Blocks of a stream wait for each other: see [Outbox.PutMore]. Large
// payloads are copied at most once, by their sender, and stand beside the batch: see [Outbox.Lend].
//
// The outbox knows neither wires nor limits. It has at most one writer at a time. If there is none,
// Put tells its caller that it is the writer now. The writer alternates between [Outbox.Take], the
// Wire and [Outbox.Written] until Take says that nothing is left.
//
// Only the Outbox has a lock. Its parts have none, and do not know each other: the batch, the
// queue, the gate, the controls, the flushes, the log of what was sent, and the news for others.
// The intake, which needs no lock, is one more.
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
	putControl func(message.Control)     // appendLocked, for Controls
	max        int                       // bytes of the largest frame that the peer accepts
	overhead   uint32                    // what a Block costs the peer besides its payload
	lends      bool                      // see Lend

	flying *lent // belongs to the writer: what it has taken beside the frames

	writer writer // these two need no lock, but for most of what happens to the writer
	intake intake

	mu       sync.Mutex
	nextID   uint64    // of the next pipe opened here; guarded by mu, like all below
	noOpens  bool      // see EndOpens
	part     int       // bytes of the largest part of a message, see Divide
	underway *underway // the messages that leave in parts; nil until one has
	batch    batch     // departs next
	gate     gate      // for what is in flight
	flight   amount    // messages that the writer has taken and not yet written
	queue    queue     // what waits behind the batch
	controls controls
	flushes  flushes
	log      *log // nil unless what was sent is kept for a resume
	news     news // what others have to be told once mu is free
}

// news is what others have to be told.
type news struct {
	gone  amount // messages that were written or dropped
	drops *drops // nil if there are none
}

// New returns an Outbox whose first pipe gets firstID and every later one an id larger by two, and
// whose lower priorities get share of the bytes while higher ones are busy. A Block costs the peer
// overhead bytes besides its payload. Both functions are called without a lock: written when
// messages that hold so many bytes in all have been given to the Wire or dropped; dropped, which
// may be nil, with the Blocks and Opens that are dropped at once, in their order.
func New(firstID uint64, maxFrame int, overhead uint32, share float64, written func(messages, bytes int), dropped func([]Drop)) *Outbox {
	o := &Outbox{written: written, dropped: dropped, max: maxFrame, overhead: overhead, nextID: firstID}
	o.batch.most = batchSize
	o.putControl = func(c message.Control) { o.appendLocked(c) }
	o.part = math.MaxInt - lengthSize
	o.queue.order.Guard(share)
	return o
}

// Lend lets large payloads be given out in memory of their own, where there are buffers for them:
// then [Outbox.Segments] has to be asked after each Take. It is called before everything else, and
// not together with Keep.
func (o *Outbox) Lend() { o.lends = true }

// MaxSize returns how many bytes of variable length, payload, message and detail, the peer takes in
// one message.
func (o *Outbox) MaxSize() int { return o.max - HeadSize }

// Waiting returns how many messages wait behind the departing batch.
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

// unlock unlocks, and then tells what has been written or dropped meanwhile.
func (o *Outbox) unlock() {
	n := o.news
	o.news = news{}
	o.mu.Unlock()
	if n.gone.messages > 0 {
		o.written(n.gone.messages, n.gone.bytes)
	}
	if n.drops != nil {
		n.drops.tell(o.dropped)
	}
}

// dropsLocked returns what has to be told of dropped messages, for something to be added.
func (o *Outbox) dropsLocked() *drops {
	if o.news.drops == nil {
		o.news.drops = new(drops)
	}
	return o.news.drops
}
