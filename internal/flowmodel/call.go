package flowmodel

import (
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// call is one call with all that its two ends know of it.
type call struct {
	id       int
	from     int // the end that calls
	parent   *call
	depth    int
	nested   bool
	stream   bool // it carries Blocks
	priority priority.Priority
	params   int
	result   int
	nature   nature
	cost     int // of its Open

	habits

	// What the caller's end knows.
	caller   callerState
	wantGone bool         // its enclosing call is over, or the session is about to be
	claim    limits.Claim // of a stream on room for its window
	claimed  bool         // that stands in the line, or has got it
	turn     bool         // it has got it
	opened   bool         // the window is the pipe's
	leaving  *departure   // its Open, while that waits to be counted
	entered  bool         // it is one of the calls within others
	within   int          // what it holds of the room for streams of these
	departed bool         // the peer may know of it

	// What the callee's end knows.
	callee    calleeState
	lent      bool // its worker
	kids      int  // calls within it that run now
	toNest    int  // and those that are still to be made
	cancelled bool
	parked    bool // its answer waits to be counted

	flow   [2]priority.Flow[message] // what waits in the outbox of each end
	closed [2]bool                   // nothing may follow there
	over   [2]bool                   // the pipe, at each end

	up   direction // from the caller to the handler
	down direction // from the handler to the caller
}

// habits are what the applications at both ends of a call will do.
type habits struct {
	deepest  int  // how deep the tree of the call may be
	cancelAt int  // the step at which the caller gives up; 0: never
	first    bool // calls within it come before the handler touches its stream
	hasty    bool // the handler returns without reading to the end
	sleepy   bool // somebody in its tree sleeps for ever
	asleep   bool // the handler never returns
}

type nature uint8

const (
	ordinary nature = iota
	unknown         // there is no such function
	inline          // it is answered on the reader
)

type callerState uint8

const (
	callerWindow   callerState = iota // its stream waits for room for its window here
	callerCredit                      // its Open waits for room at the peer
	callerOutbound                    // and at the outbound soft limit
	callerSent                        // it waits for the answer
	callerReads                       // which has come, and Blocks are left to be read
	callerEnded
)

var callerWaits = [...]string{
	"its window", "room at the peer", "the outbound soft limit", "the answer", "its reader", "nothing",
}

type calleeState uint8

const (
	calleeNone    calleeState = iota
	calleeWaits               // for a worker, a window, room for its parameters
	calleeRuns                // its handler does
	calleeAnswers             // the answer was given on the reader, and waits to be counted
	calleeEnded
)

var calleeIs = [...]string{"has not arrived", "waits", "runs", "is answered", "has ended"}

func (c *call) to() int { return 1 - c.from }

// ended says whether neither end has anything more to do with c.
func (c *call) ended() bool {
	return c.caller == callerEnded && (c.callee == calleeNone || c.callee == calleeEnded) && !c.parked
}

// line is calls in the order in which they take their turns.
type line [3][]*call

// at returns the place of a priority: the highest first.
func at(p priority.Priority) int { return int(priority.Normal + 1 - p) }

func (l *line) push(c *call) { l[at(c.priority)] = append(l[at(c.priority)], c) }

// remove reports whether c was there.
func (l *line) remove(c *call) bool {
	calls := l[at(c.priority)]
	for i, other := range calls {
		if other == c {
			l[at(c.priority)] = append(calls[:i], calls[i+1:]...)
			return true
		}
	}
	return false
}

// first returns the call whose turn it is, or nil.
func (l *line) first() *call {
	for _, calls := range l {
		if len(calls) > 0 {
			return calls[0]
		}
	}
	return nil
}
