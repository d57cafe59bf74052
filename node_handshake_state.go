package asterisque

import "sync/atomic"

// handshakeState is how far a handshake has come. Its end is decided once: whoever moves it there
// sees to what follows, and the others find out.
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
	exchanging handshakeState = iota // it is open whether there will be a session
	answering                        // this side says that there will be; the peer may know already
	agreed                           // both sides know: the Wire is the session's
	rejected                         // there will be none; the peer is told why, if it can be
	timedOut                         // the same, because the time was over
	// the same, because others need the place; the peer is not told
	displaced
	abandoned // the same, because the node is closed
)

// handshakeEvent is what happens to a handshake.
type handshakeEvent uint8

const (
	answers    handshakeEvent = iota // the answer is about to be written
	agrees                           // the answer was written, or has come
	rejects                          // this side rejects the peer, or cannot go on
	timeOver                         // the context has ended
	placeLost                        // the place was lost
	nodeCloses                       // the node was closed
	nodeDrains                       // the node is about to go, and waits for what goes on
)

// next returns the state after e. It reports false, and returns s, if e comes too late.
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

// move reports whether e has come in time.
func (h *handshakeStatus) move(e handshakeEvent) bool {
	for {
		s := h.now()
		next, ok := s.next(e)
		if !ok || h.state.CompareAndSwap(uint32(s), uint32(next)) {
			return ok
		}
	}
}
