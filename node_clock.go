package asterisque

import "time"

// The time of a node is counted from its birth: a call that has to remember a moment needs a third
// of the memory of a time.Time for it.

// now is the node's clock: it is positive, and does not jump.
func (n *Node) now() time.Duration { return time.Since(n.born) + 1 }

// timeAt returns the time at which the node's clock shows d.
func (n *Node) timeAt(d time.Duration) time.Time { return n.born.Add(d - 1) }
