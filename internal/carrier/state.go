package carrier

import "fmt"

// State is how far a Carrier has got.
//
//	attached ── lost ──► losing ── halted ──► leaving ── parked ──► away
//	   ▲                    ▲                                       │  ▲
//	   │ resent             │ lost                          claimed │  │ parked
//	   │                    │                                       ▼  │
//	   └───────────────── resending ◄──────── attached ──────── returning
//
//	every state but closing and closed ── ended ──► closing ── finished ──► closed
type State uint8

const (
	Attached  State = iota // it has a Wire, which somebody reads
	Losing                 // the Wire is lost, and somebody may still be writing
	Leaving                // nobody writes any more, and the session is told
	Away                   // nobody reads or writes: it belongs to whoever claims it
	Returning              // it was claimed, to go on over another Wire
	Resending              // it has another Wire, over which the peer is sent what it lacks
	Closing                // the session has ended, and the goodbye may be on its way
	Closed                 // nobody reads or writes any more, nor ever will
)

var stateNames = [...]string{"attached", "losing", "leaving", "away", "returning", "resending", "closing", "closed"}

func (s State) String() string { return stateNames[s] }

// away reports whether another Wire is waited for.
func (s State) away() bool { return s == Leaving || s == Away || s == Returning }

// event is what changes the state of a Carrier.
type event uint8

const (
	lost     event = iota // the Wire is lost
	halted                // nobody writes any more
	parked                // nobody owns it
	claimed               // somebody owns it, to go on over another Wire
	attached              // it has another Wire
	resent                // the peer has been sent what it lacked
	ended                 // the session has ended
	finished              // all is over
)

var eventNames = [...]string{"lost", "halted", "parked", "claimed", "attached", "resent", "ended", "finished"}

func (e event) String() string { return eventNames[e] }

// next returns the state after e. ok is false where e changes nothing: the session has ended first,
// somebody else was faster, or the Wire was lost meanwhile.
func (s State) next(e event) (_ State, ok bool) {
	switch {
	case e == finished && s == Closing:
		return Closed, true
	case s >= Closing:
		return s, false
	case e == ended:
		return Closing, true
	case e == lost && (s == Attached || s == Resending):
		return Losing, true
	case e == halted && s == Losing:
		return Leaving, true
	case e == parked && (s == Leaving || s == Returning):
		return Away, true
	case e == claimed && s == Away:
		return Returning, true
	case e == attached && s == Returning:
		return Resending, true
	case e == resent && s == Resending:
		return Attached, true
	case e == resent && (s == Losing || s == Attached), e == claimed:
		return s, false
	}
	panic(fmt.Sprintf("BUG: carrier %v: %v", s, e))
}
