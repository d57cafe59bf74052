package carrier

import "fmt"

// State is the state of a Carrier.
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
	Attached  State = iota // has a Wire and a reader
	Losing                 // the Wire is lost; the writer may still write
	Leaving                // the writer has ended; the session is informed
	Away                   // no reader, no writer, no owner: claim makes its caller the owner
	Returning              // has an owner that resumes it over another Wire
	Resending              // has another Wire; sends the frames that the peer lacks
	Closing                // the session has ended; the goodbye may be in flight
	Closed                 // reading and writing have ended for good
)

var stateNames = [...]string{"attached", "losing", "leaving", "away", "returning", "resending", "closing", "closed"}

func (s State) String() string { return stateNames[s] }

// away reports whether the Carrier waits for another Wire.
func (s State) away() bool { return s == Leaving || s == Away || s == Returning }

// carrierEvent is a change of the state of a Carrier.
type carrierEvent uint8

const (
	lost     carrierEvent = iota // the Wire is lost
	halted                       // the writer has ended
	parked                       // the owner has left
	claimed                      // a new owner resumes it over another Wire
	attached                     // it has another Wire
	resent                       // the frames that the peer lacked are sent
	ended                        // the session has ended
	finished                     // everything has ended
)

var eventNames = [...]string{"lost", "halted", "parked", "claimed", "attached", "resent", "ended", "finished"}

func (e carrierEvent) String() string { return eventNames[e] }

// next returns the state after e. ok is false if e has no effect: the session has ended before,
// another claim was faster, or the Wire was lost meanwhile.
func (s State) next(e carrierEvent) (_ State, ok bool) {
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
