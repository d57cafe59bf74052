package outbox

// flowState is the state of a pipe: the messages put so far, and whether the peer may know the
// pipe.
//
//	 unsent ----put end---> unsentHalfClosed ---put close---> unsentClosing
//	   |  \---------------------put close------------------------^   |
//	   |                           |                                 |
//	Open departs              Open departs                      Open departs
//	   |                           |                                 |
//	   v                           v                                 v
//	  open -----put end------> halfClosed ------put close-------> closing
//	      \----------------------put close------------------------^
//
//	 upper row: cancel, finish, Open dropped ---> cancelled
//	 lower row: finish -------------------------> closing
//
// Blocks may be put until the end of their direction was put, and Controls until the Close was put.
// Cancel changes nothing once the Open has departed, because the Close still has to be put.
type flowState uint8

const (
	never            flowState = iota // no flow: nothing is allowed
	unsent                            // the Open has not departed, and may not have been put
	unsentHalfClosed                  // the end of the Blocks waits behind the Open
	unsentClosing                     // the Close waits behind the Open
	open                              // the peer may know the pipe
	halfClosed                        // no Block may follow
	closing                           // nothing may follow: the Close was put, or has arrived
	cancelled                         // nothing may follow; the peer never learns of the pipe
	flowStates
)

// flowEvent is an event of a flow.
type flowEvent uint8

const (
	putOpen flowEvent = iota
	putBlock
	putEnd
	putControl
	putClose
	openDeparts
	openDropped // it expired, or the Outbox was closed
	cancel      // this side cancels the call
	finish      // the peer has closed the pipe
	flowEvents
)

// flowNext contains the allowed transitions.
var flowNext = [flowStates][flowEvents]flowState{
	unsent: {
		putOpen: unsent, putBlock: unsent, putEnd: unsentHalfClosed, putControl: unsent, putClose: unsentClosing,
		openDeparts: open, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	unsentHalfClosed: {
		putControl: unsentHalfClosed, putClose: unsentClosing,
		openDeparts: halfClosed, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	unsentClosing: {
		openDeparts: closing, openDropped: cancelled, cancel: cancelled, finish: cancelled,
	},
	open: {
		putBlock: open, putEnd: halfClosed, putControl: open, putClose: closing,
		cancel: open, finish: closing,
	},
	halfClosed: {
		putControl: halfClosed, putClose: closing,
		cancel: halfClosed, finish: closing,
	},
	closing:   {cancel: closing, finish: closing},     // both came late
	cancelled: {cancel: cancelled, finish: cancelled}, // as here
}

// next returns the state after e. ok is false if e is not allowed in s.
func (s flowState) next(e flowEvent) (_ flowState, ok bool) {
	n := flowNext[s][e]
	return n, n != never
}

// departed reports whether the peer may know the pipe.
func (s flowState) departed() bool { return s == open || s == halfClosed || s == closing }
