package asterisque

import "time"

// The clock of a node is a number: a third of a time.Time, of which each call holds one.

// now is the node's clock: it is positive, and does not jump.
func (n *Node) now() time.Duration { return time.Since(n.born) + 1 }

// timeAt returns the time at which the node's clock shows d.
func (n *Node) timeAt(d time.Duration) time.Time { return n.born.Add(d - 1) }
