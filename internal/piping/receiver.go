package piping

import (
	"math"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// receiver is the direction of a pipe in which Blocks arrive. The lock of its End guards it.
type receiver struct {
	inbox   fifo.Queue[Block] // received and not yet taken
	inboxed int               // bytes of payload in inbox
	taken   uint64            // cost of the taken Blocks
	granted uint64            // cost up to which the peer may send
	arrived signal            // set when there is something to receive
	extras  *receiverExtras   // nil until it is needed
	hold    flow.Window       // the room of the window
	largest uint32            // cost of the largest received Block
	waiting uint16            // number of waiting calls of Recv
	paused  bool              // by the application
	usedUp  bool              // the peer has to wait for a larger window
	notice  peerNotice

	lasting  bool              // see Config; fixed, as the next two
	priority priority.Priority // of the pipe
	wrapped  bool              // the End has interceptors; kept here to save space
}

// receiverExtras is the part of a receiver that is rarely needed.
type receiverExtras struct {
	interceptors *interceptedEnd // interceptors of the End; fixed; nil without
	arriving     arrivingBlock
	skipped      uint64 // Blocks dropped since the one taken last
	endSkipped   uint64 // Blocks dropped between the last one and the peer's end-of-stream
	owed         uint64 // value of owed of the Terms when this receiver last added to it

	left *leftPipe    // nil unless the call has ended with untaken Blocks
	lost *codec.Abort // the reason why they were dropped; nil: they were not, or by the application
}

// peerNotice is the state of the information for the peer.
type peerNotice uint8

const (
	noNews    peerNotice = iota
	announced            // the port was informed that there are Controls
	creditDue            // likewise, and they include a Credit
)

// needs returns the special part of r, creating it if necessary.
func (r *receiver) needs() *receiverExtras {
	if r.extras == nil {
		r.extras = new(receiverExtras)
	}
	return r.extras
}

// held returns the number and the bytes of the Blocks in the inbox.
func (r *receiver) held() (messages, bytes int) {
	for i := range r.inbox.Len() {
		bytes += r.inbox.At(i).Held()
	}
	return r.inbox.Len(), bytes
}

// received returns the cost of all received Blocks, and of the parts of the one that arrives.
func (r *receiver) received(t *Terms) uint64 {
	n := r.taken + uint64(r.inboxed) + uint64(r.inbox.Len())*t.Overhead
	if r.extras != nil {
		n += r.extras.arriving.cost(t)
	}
	return n
}

// promised returns the granted cost beyond that of the taken Blocks.
func (r *receiver) promised() uint64 {
	if r.granted <= r.taken {
		return 0
	}
	return r.granted - r.taken
}

// used returns the least size of the window: the cost that is granted or has arrived, except for
// what the debt covers. After a Block was abandoned, more may have arrived than is granted.
func (r *receiver) used(t *Terms) uint64 {
	n := max(r.promised(), r.received(t)-r.taken)
	if r.extras != nil {
		n -= min(n, uint64(r.extras.arriving.debt+r.extras.arriving.reserved))
	}
	return n
}

// admits reports whether a received Block of the given payload is within the limit of the peer.
func (r *receiver) admits(t *Terms, payload int) bool {
	cost := t.cost(payload)
	if !r.count(t, r.received(t), cost) {
		return false
	}
	r.usedUp = r.usedUp || r.windowed() && r.granted-r.received(t)-cost < cost
	r.largest = max(r.largest, uint32(min(cost, math.MaxUint32)))
	return true
}

// count reports whether a Block, or parts of one, of the given cost may arrive after received.
func (r *receiver) count(t *Terms, received, cost uint64) bool {
	if !r.windowed() {
		return true
	}
	after := received + cost
	if after > r.granted {
		return false
	}
	// A peer without extra credit would wait now. With it, Credits at half of the window would keep
	// the window as small as it is.
	least := uint64(t.Early)
	early := after >= least && received < least
	r.usedUp = r.usedUp || early || r.granted-after < least
	return true
}

// push puts a Block into the inbox.
func (r *receiver) push(b Block) {
	r.inbox.Push(b)
	r.inboxed += len(b.Payload)
	r.arrived.set()
}

// pop removes a Block from the inbox, which is not empty.
func (r *receiver) pop() Block {
	b := r.inbox.Pop()
	r.inboxed -= len(b.Payload)
	return b
}

// skip adds up the dropped Blocks before b. An expired b counts as dropped, too.
func (r *receiver) skip(b *Block, expired bool) {
	if r.extras == nil && b.Skipped == 0 && !expired {
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
func (r *receiver) discard(t *Terms, a *deferred) {
	a.messages, a.bytes = r.held()
	r.inbox.Reset()
	r.taken += uint64(r.inboxed) + uint64(a.messages)*t.Overhead
	r.inboxed = 0
}
