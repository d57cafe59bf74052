package asterisque

// Remembered returns the bytes that n counts for remembered durable calls.
func Remembered(n *Node) int {
	n.durable.mu.Lock()
	defer n.durable.mu.Unlock()
	return n.durable.room.held.Bytes
}

// RememberedCall is the cost of a remembered call with an answer of one byte.
const RememberedCall = heldRemember + keySize + 8

// PlacesWithin returns the number of nested calls that hold a place at n, for all its peers.
func PlacesWithin(n *Node) int { return int(n.staff.nested.held.Load()) }

// Owners returns the number of owners that n knows.
func Owners(n *Node) int {
	n.owners.mu.Lock()
	defer n.owners.mu.Unlock()
	return len(n.owners.all)
}

// Occupied returns the number of keys in use by calls of a function, plus the calls that wait at
// its gate or hold one of its places.
func Occupied(svc *Service, function uint16, places int) (n int) {
	h := svc.find(function)
	if h.key != nil {
		k := &h.key.keys
		k.mu.Lock()
		defer k.mu.Unlock()
		n += len(k.last) + k.nested
	}
	if g := h.gate; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		n += places - g.free + g.queue.len() + len(g.idle) + g.urgent
	}
	return n
}

// WithMaxPart divides messages of more than n bytes into parts of n bytes, 4 KiB at least.
func WithMaxPart(n int) Option { return func(c *config) { c.maxPart = n } }
