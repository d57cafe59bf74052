package asterisque

// PlacesWithin returns the number of nested calls that hold a place at n, for all its peers.
func PlacesWithin(n *Node) int { return int(n.scheduler.nested.held.Load()) }

// WithMaxPart divides messages of more than n bytes into parts of n bytes, 4 KiB at least.
func WithMaxPart(n int) Option { return func(c *config) { c.maxPart = n } }
