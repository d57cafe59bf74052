package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// call is one call, with the state of both of its ends.
type call struct {
	id       int
	from     int // the calling end
	parent   *call
	depth    int
	nested   bool
	stream   bool // it carries Blocks
	priority priority.Priority
	params   int
	result   int
	nature   nature
	cost     int // of its Open
	initial  int // extra credit that its Open takes

	habits

	// State of the calling end.
	caller   callerState
	wantGone bool        // its enclosing call is over, or the session is about to end
	claim    flow.Waiter // of a stream on room for its window
	claimed  bool        // the claim waits, or has been granted
	turn     bool        // the claim has been granted
	opened   bool        // the pipe has the window
	leaving  *departure  // its Open, while that waits to be counted
	entered  bool        // it is one of the nested calls
	within   int         // bytes held in the room for streams of nested calls
	departed bool        // the peer may know it

	// State of the called end.
	callee    calleeState
	lent      bool // its worker is lent
	kids      int  // its running nested calls
	toNest    int  // its nested calls to come
	cancelled bool
	parked    bool // its answer waits to be counted

	flow   [2]priority.Flow[message] // messages in the outbox of each end
	closed [2]bool                   // nothing may follow at that end
	over   [2]bool                   // the pipe is over, at each end

	up   direction // from the caller to the handler
	down direction // from the handler to the caller
}

// habits are the future behaviour of the applications at both ends of a call.
type habits struct {
	deepest  int  // maximum depth of the tree of the call
	cancelAt int  // the step at which the caller cancels; 0: never
	first    bool // nested calls come before the handler uses its stream
	hasty    bool // the handler returns without reading to the end
	abrupt   bool // the handler returns without sending to the end
	sleepy   bool // some application in its tree sleeps for ever
	asleep   bool // the handler never returns
}

type nature uint8

const (
	ordinary nature = iota
	unknown         // there is no such function
	inline          // the reader answers it
)

type callerState uint8

const (
	callerWindow   callerState = iota // its stream waits for room for its window here
	callerCredit                      // its Open waits for room at the peer
	callerOutbound                    // and at the outbound soft limit
	callerSent                        // it waits for the answer
	callerReads                       // the answer has arrived, and Blocks are left to be read
	callerEnded
)

var callerWaits = [...]string{
	"its window", "room at the peer", "the outbound soft limit", "the answer", "its reader", "nothing",
}

type calleeState uint8

const (
	calleeNone    calleeState = iota
	calleeWaits               // for a worker, a window, room for its parameters
	calleeRuns                // its handler runs
	calleeAnswers             // the reader has answered, and the answer waits to be counted
	calleeEnded
)

var calleeIs = [...]string{"has not arrived", "waits", "runs", "is answered", "has ended"}

func (c *call) to() int { return 1 - c.from }

// ended reports whether both ends have finished with c.
func (c *call) ended() bool {
	return c.caller == callerEnded && (c.callee == calleeNone || c.callee == calleeEnded) && !c.parked
}

// messageLine is calls in the order in which they are served.
type messageLine [3][]*call

// at returns the index of a priority: the highest first.
func at(p priority.Priority) int { return int(priority.Normal + 1 - p) }

func (l *messageLine) push(c *call) { l[at(c.priority)] = append(l[at(c.priority)], c) }

// remove removes c and reports whether c was in l.
func (l *messageLine) remove(c *call) bool {
	calls := l[at(c.priority)]
	for i, other := range calls {
		if other == c {
			l[at(c.priority)] = append(calls[:i], calls[i+1:]...)
			return true
		}
	}
	return false
}

// first returns the call that is next in turn, or nil.
func (l *messageLine) first() *call {
	for _, calls := range l {
		if len(calls) > 0 {
			return calls[0]
		}
	}
	return nil
}
