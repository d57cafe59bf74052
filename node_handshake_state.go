package asterisque

import "sync/atomic"

// handshakeState is the progress of a handshake. Exactly one goroutine moves it to a final state,
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
//	                             +--> abandoned  nodeCloses; nodeDrains only if nobody has answered
type handshakeState uint32

const (
	exchanging handshakeState = iota // no side has decided yet
	answering                        // this side accepts the session; the peer may know already
	agreed                           // both sides know: the session owns the Wire
	rejected                         // no session; the peer receives the reason, if possible
	timedOut                         // no session, because the time is over
	// no session, because another connection needs the place; the peer is not notified
	displaced
	abandoned // no session, because the node is closed
)

// handshakeEvent is an event of a handshake.
type handshakeEvent uint8

const (
	answers    handshakeEvent = iota // the answer is about to be written
	agrees                           // the answer was written, or has arrived
	rejects                          // this side rejects the peer, or fails
	timeOver                         // the context has ended
	placeLost                        // the place was lost
	nodeCloses                       // the node was closed
	nodeDrains                       // the node shuts down, and waits for running calls
)

// next returns the state after e. It returns s and false if e comes too late.
func (s handshakeState) next(e handshakeEvent) (_ handshakeState, ok bool) {
	switch {
	case s == exchanging && e == answers:
		return answering, true
	case s > answering || e == answers, s == answering && e == nodeDrains:
		return s, false
	}
	return [...]handshakeState{
		agrees: agreed, rejects: rejected, timeOver: timedOut, placeLost: displaced, nodeCloses: abandoned, nodeDrains: abandoned,
	}[e], true
}

// handshakeStatus is the state of one handshake. It may be used concurrently.
type handshakeStatus struct{ state atomic.Uint32 }

func (h *handshakeStatus) now() handshakeState { return handshakeState(h.state.Load()) }

// move applies e, and reports whether it came in time.
func (h *handshakeStatus) move(e handshakeEvent) bool {
	for {
		s := h.now()
		next, ok := s.next(e)
		if !ok || h.state.CompareAndSwap(uint32(s), uint32(next)) {
			return ok
		}
	}
}
