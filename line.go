package asterisque

import "github.com/asterisque-go/asterisque/priority"

// place says how far a call of the peer has got.
type place uint8

const (
	arrives place = iota // the reader has yet to find out where it belongs
	waits                // for its turn, its function or a worker
	runs                 // a worker has taken it
	left                 // it is over, or was given up while it waited
)

// line is where calls wait: by priority, and among equals in the order of their arrival. A call that leaves is only counted, and removed together with others, so that
// leaving takes constant time on average however many wait. The zero line is empty. It is guarded by the lock of the dispatcher to which its calls belong.
type line struct {
	calls priority.Lines[*incoming]
	gone  int // of calls, how many have left
}

// tolerated is how many that have left may stay at least.
const tolerated = 32

func (l *line) len() int { return l.calls.Len() - l.gone }

func (l *line) push(c *incoming) {
	c.in = l
	l.calls.Push(c.priority, c)
}

// pop removes and returns the call whose turn it is, or nil if none waits.
func (l *line) pop() *incoming {
	for {
		c, ok := l.calls.Pop()
		if !ok {
			return nil
		}
		c.in = nil
		if c.state == waits {
			return c
		}
		l.gone--
	}
}

// lessUrgent removes and returns, of the calls with the lowest priority, the one that came last, if that priority is lower than p.
func (l *line) lessUrgent(p priority.Priority) *incoming {
	for {
		c, ok := l.calls.PopLast(p)
		if !ok {
			return nil
		}
		c.in = nil
		if c.state == waits {
			return c
		}
		l.gone--
	}
}

// left notes that one of the calls has left.
func (l *line) left() {
	if l.gone++; l.gone > tolerated && l.gone > l.calls.Len()/2 {
		l.calls.Filter(func(c *incoming) bool { return c.state == waits })
		l.gone = 0
	}
}
