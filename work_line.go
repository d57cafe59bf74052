package asterisque

import "github.com/asterisque-go/asterisque/priority"

// place says how far a call of the peer has got.
type place uint8

const (
	arrives place = iota // the reader has yet to find out where it belongs
	// it waits, and is about to be put into a line; or it waits in that of its key
	inHand
	inReady // it waits for a worker
	inLarge // for room for its parameters
	inGate  // for its function
	runs    // a worker has taken it
	left    // it is over, or was given up while it waited
)

// waits reports whether the call has not begun.
func (p place) waits() bool { return p > arrives && p < runs }

// line is where calls wait: by priority, and among equals in the order of their arrival. A call
// that leaves is only counted, and removed together with others, so that leaving takes constant
// time on average however many wait. A line is guarded by the lock of the dispatcher to which its
// calls belong.
type line struct {
	is    place // fixed
	calls priority.Lines[*incoming]
	gone  int // of calls, how many have left
}

// tolerated is how many that have left may stay at least.
const tolerated = 32

// len returns the number of calls that wait. A nil line is empty.
func (l *line) len() int {
	if l == nil {
		return 0
	}
	return l.calls.Len() - l.gone
}

func (l *line) push(c *incoming) {
	c.state = l.is
	l.calls.Push(c.priority, c)
}

// first is peek, and quick for a line that is mostly empty or nil.
func (l *line) first() *incoming {
	if l == nil || l.calls.Len() == 0 {
		return nil
	}
	return l.peek()
}

// peek returns the call whose turn it is, or nil if none waits.
func (l *line) peek() *incoming {
	for {
		_, c, ok := l.calls.Peek()
		if !ok {
			return nil
		}
		if c.state == l.is {
			return c
		}
		l.calls.Pop()
		l.gone--
	}
}

// above reports whether a call with a priority above p waits.
func (l *line) above(p priority.Priority) bool {
	c := l.peek()
	return c != nil && c.priority > p
}

// pop removes and returns the call whose turn it is, or nil if none waits.
func (l *line) pop() *incoming {
	for {
		c, ok := l.calls.Pop()
		if !ok {
			return nil
		}
		if c.state == l.is {
			c.state = inHand
			return c
		}
		l.gone--
	}
}

// lessUrgent removes and returns, of the calls with the lowest priority, the one that came last, if
// that priority is lower than p.
func (l *line) lessUrgent(p priority.Priority) *incoming {
	for {
		c, ok := l.calls.PopLast(p)
		if !ok {
			return nil
		}
		if c.state == l.is {
			c.state = inHand
			return c
		}
		l.gone--
	}
}

// left notes that one of the calls has left.
func (l *line) left() {
	if l.gone++; l.gone > tolerated && l.gone > l.calls.Len()/2 {
		l.calls.Filter(func(c *incoming) bool { return c.state == l.is })
		l.gone = 0
	}
}
