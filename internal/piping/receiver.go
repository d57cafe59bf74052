package piping

import (
	"math"
	"runtime"

	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// receiver is the direction of a pipe in which Blocks arrive. The lock of its End guards it.
type receiver struct {
	inbox   fifo.Queue[Block] // arrived and not yet taken
	inboxed int               // bytes of payload in inbox
	taken   uint64            // cost of the Blocks that were taken
	granted uint64            // up to which cost the peer may send
	arrived signal            // something to receive
	special *special          // nil until it is needed
	hold    limits.Hold       // of the room for what arrives
	largest uint32            // cost of the largest Block that has arrived
	waiting uint16            // calls of Recv that wait
	paused  bool              // by the application
	usedUp  bool              // the peer has to wait for a larger window
	news    news

	lasting  bool              // see Config; these are fixed
	priority priority.Priority // of the pipe
	wrapped  bool              // code stands around the End: here is room to say it
}

// special is what few receivers need.
type special struct {
	around     *around // that stands around the End; fixed; nil without
	wish       wish
	skipped    uint64 // Blocks dropped since the one that was taken last
	endSkipped uint64 // Blocks dropped between the last one and the peer's end-of-stream
	owed       uint64 // that of the terms when it was last added to

	left    *leftover // nil unless the call is over
	garbage runtime.Cleanup
}

// news says whether the peer has to be told something.
type news uint8

const (
	noNews    news = iota
	announced      // the port was told that there is something to tell
	creditDue      // likewise, and what is granted is part of that
)

// needs returns the special part of r, which it makes if there is none.
func (r *receiver) needs() *special {
	if r.special == nil {
		r.special = new(special)
	}
	return r.special
}

// held returns how many Blocks wait in the inbox, and how many bytes they hold.
func (r *receiver) held() (messages, bytes int) {
	for i := range r.inbox.Len() {
		bytes += r.inbox.At(i).Held()
	}
	return r.inbox.Len(), bytes
}

// received returns the cost of all Blocks that have arrived.
func (r *receiver) received(t *Terms) uint64 {
	return r.taken + uint64(r.inboxed) + uint64(r.inbox.Len())*t.Overhead
}

// promised returns what the peer was promised beyond what has been taken.
func (r *receiver) promised() uint64 {
	if r.granted <= r.taken {
		return 0
	}
	return r.granted - r.taken
}

// admits reports whether the peer may send a Block of so many bytes, which has come.
func (r *receiver) admits(t *Terms, payload int) bool {
	if r.granted == Unlimited {
		return true
	}
	limit := r.granted
	if r.special != nil {
		limit = max(limit, r.special.wish.use())
	}
	cost := t.cost(payload)
	received := r.received(t) + cost
	if received > limit {
		return false
	}
	r.usedUp = r.usedUp || limit-received < max(cost, t.Early)
	r.largest = max(r.largest, uint32(min(cost, math.MaxUint32)))
	return true
}

// mayAdmit reports whether the peer may send a Block of so many bytes, which has not come yet.
func (r *receiver) mayAdmit(t *Terms, payload int) bool {
	limit := r.granted
	if s := r.special; s != nil && s.wish.allowance == allowGiven {
		limit = max(limit, s.wish.allowed)
	}
	return r.granted == Unlimited || r.received(t)+t.cost(payload) <= limit
}

// push puts a Block into the inbox.
func (r *receiver) push(b Block) {
	r.inbox.Push(b)
	r.inboxed += len(b.Payload)
	r.arrived.set()
}

// pop takes a Block out of the inbox, in which one is.
func (r *receiver) pop() Block {
	b := r.inbox.Pop()
	r.inboxed -= len(b.Payload)
	return b
}

// skip adds up how many Blocks are missing before b. If b has expired, it is missing too.
func (r *receiver) skip(b *Block, expired bool) {
	if r.special == nil && b.Skipped == 0 && !expired {
		return
	}
	s := r.needs()
	s.skipped += b.Skipped
	b.Skipped = s.skipped
	if expired {
		s.skipped++
	} else {
		s.skipped = 0
	}
}

// discard empties the inbox.
func (r *receiver) discard(t *Terms, a *after) {
	a.messages, a.bytes = r.held()
	r.inbox.Reset()
	r.taken += uint64(r.inboxed) + uint64(a.messages)*t.Overhead
	r.inboxed = 0
}
