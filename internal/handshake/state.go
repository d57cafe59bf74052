package handshake

import "sync/atomic"

// state is the progress of a handshake. Exactly one goroutine moves it to a final state,
// and handles the consequences.
//
//	              answers            agrees
//	exchanging ------------> answering ------> agreed
//	  |    |      agrees         |               ^
//	  |    +---------------------|---------------+  on the side that connected
//	  |                          |
//	  +--------------------------+--> rejected   rejects: there will be no session
//	                             +--> timedOut   timeOver
//	                             +--> displaced  placeLost: others need the place of the Wire
//	                             +--> abandoned  nodeCloses; nodeDrains only before the answer
type state uint32

const (
	exchanging state = iota // no side has decided yet
	answering               // this side accepts the session; the peer may know already
	agreed                  // both sides know: the session owns the Wire
	rejected                // no session; the peer receives the reason, if possible
	timedOut                // no session, because the time is over
	// no session, because another connection needs the place; the peer is not notified
	displaced
	abandoned // no session, because the node is closed
)

// event is an event of a handshake.
type event uint8

const (
	answers    event = iota // the answer is about to be written
	agrees                  // the answer was written, or has arrived
	rejects                 // this side rejects the peer, or fails
	timeOver                // the context has ended
	placeLost               // the place was lost
	nodeCloses              // the node was closed
	nodeDrains              // the node shuts down, and waits for running calls
)

// next returns the state after e. It returns s and false if e comes too late.
func (s state) next(e event) (_ state, ok bool) {
	switch {
	case s == exchanging && e == answers:
		return answering, true
	case s > answering || e == answers, s == answering && e == nodeDrains:
		return s, false
	}
	return [...]state{
		agrees: agreed, rejects: rejected, timeOver: timedOut, placeLost: displaced, nodeCloses: abandoned, nodeDrains: abandoned,
	}[e], true
}

// status is the state of one handshake. It may be used concurrently.
type status struct{ at atomic.Uint32 }

func (h *status) now() state { return state(h.at.Load()) }

// move applies e, and reports whether it came in time.
func (h *status) move(e event) bool {
	for {
		s := h.now()
		next, ok := s.next(e)
		if !ok || h.at.CompareAndSwap(uint32(s), uint32(next)) {
			return ok
		}
	}
}
