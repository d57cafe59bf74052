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

// mostOwed is the largest part of a window, in bytes, that is taken before credit is sent. Over a
// long path the rest of the window is in flight.
const mostOwed = 512 << 10

// windowed reports whether the peer has a window.
func (r *receiver) windowed() bool { return r.granted != Unlimited }

// announce informs the port, once, that there is something to send to the peer.
func (r *receiver) announce(n peerNotice, a *deferred) {
	a.announce = a.announce || r.notice == noNews
	r.notice = max(r.notice, n)
}

// tell is called when the Controls of this receiver depart. It reports whether they include a
// Credit.
func (r *receiver) tell() (credit bool) {
	credit, r.notice = r.notice == creditDue, noNews
	return credit
}

// raise grants the whole window. If the window has room for some of the largest Blocks that come,
// raise grants only the cost of these, since a sender that fills its credit would send a small
// Block after the large ones. It grants at least least, if that is not 0 and fits.
func (r *receiver) raise(t *Terms, least uint64, a *deferred) {
	received, total := r.received(t), r.taken+r.hold.Bytes()
	if rest := uint64(max(t.Early, 1)) - 1; r.largest > 0 && total > received+rest {
		if whole := (total - received - rest) / uint64(r.largest); whole > 0 {
			total = max(received+rest+whole*uint64(r.largest), min(least, total))
		}
	}
	if total <= r.granted {
		return
	}
	r.granted = total
	r.announce(creditDue, a)
	if r.extras != nil && r.needed(t) == 0 {
		r.extras.arriving.withdraw(t.Budget, a)
	}
}

// grow enlarges the window to want, or shrinks it if other windows need the room, but not below the
// granted credit.
func (r *receiver) grow(t *Terms, want uint64, a *deferred) {
	a.grant(t.Budget.Grow(&r.hold, want, r.used(t)))
}

// took processes the taking of a Block of the given cost. It resizes the window, and sends credit
// when half of the window is owed, when the peer waits for it, or when little is left.
func (r *receiver) took(s endState, t *Terms, cost uint64, a *deferred) {
	r.taken += cost
	if !r.windowed() {
		return
	}
	a.grant(t.Budget.Took(&r.hold))
	// a complete Block with a debt is the first one in the inbox
	if r.extras != nil && !r.extras.arriving.underway {
		r.extras.arriving.vacate(t.Budget, a)
	}
	drained := r.inbox.Len() == 0
	if s&(endedThere|over) != 0 {
		if drained {
			a.grant(t.Budget.Shrink(&r.hold, 0))
		}
		return
	}
	r.credit(s, t, drained, a)
}

// credit enlarges the window and sends credit when they are due. drained reports that the inbox is
// empty.
func (r *receiver) credit(s endState, t *Terms, drained bool, a *deferred) {
	left, window := r.promised(), r.hold.Bytes()
	var use uint64
	if r.taken+window >= r.granted+min(window/2, mostOwed) {
		use = r.use(t, r.taken+window-r.granted)
		r.usedUp = r.usedUp || window < use // remembered until the inbox is empty
	}
	// the peer waits for the window, or is about to, and not for the application
	grows := drained && r.usedUp
	if grows {
		r.usedUp = false
		r.grow(t, min(max(2*window, use), t.largest()), a)
	}
	needed := r.needed(t)
	window = r.hold.Bytes()
	due := r.taken+window >= r.granted+min(window/2, mostOwed) || drained && (left < uint64(t.Early) || needed > 0)
	if due {
		if !grows {
			r.grow(t, min(window, t.largest()), a)
		}
		r.raise(t, needed, a)
	}
	if due || grows {
		r.grantRest(s, t, a)
	}
}

// refill sends credit if the application waits, and less is left than the peer always gets. A Skip
// may have left so little.
func (r *receiver) refill(s endState, t *Terms, a *deferred) {
	lacks := r.windowed() && r.promised() < uint64(t.Early) && r.arriving() == nil
	if lacks && s.wants() && r.hold.Base > 0 && r.listens() && r.inbox.Len() == 0 {
		r.credit(s, t, true, a)
	}
}

// use returns the window that the path can use, given the owed cost of this pipe: its part of twice
// the capacity of the path. The part is in proportion to its part of the cost that was owed since
// the last call.
func (r *receiver) use(t *Terms, owed uint64) uint64 {
	follows := t.follows()
	if follows == 0 {
		return 0
	}
	s := r.needs()
	all := t.owed.Add(owed)
	since := all - s.owed
	s.owed = all
	return follows / max(since/owed, 1)
}

// begin gives the receiver the window of a handler that is about to run.
func (r *receiver) begin(s endState, t *Terms, h flow.Window, a *deferred) {
	if !s.wants() { // no more Blocks arrive
		a.grant(t.Budget.End(&h))
		return
	}
	a.grant(t.Budget.Join(&r.hold, h))
	r.raise(t, 0, a)
}

// settle releases the room for Blocks that cannot arrive any more, and keeps the room of the
// received ones.
func (r *receiver) settle(s endState, t *Terms, a *deferred) {
	if !r.windowed() {
		return
	}
	r.forget(s, t, a)
	a.grant(t.Budget.Shrink(&r.hold, r.received(t)-r.taken))
}

// release releases the whole room of the window, for Blocks that will not be taken.
func (r *receiver) release(s endState, t *Terms, a *deferred) {
	if !r.windowed() {
		return
	}
	r.forget(s, t, a)
	a.grant(t.Budget.End(&r.hold))
}
