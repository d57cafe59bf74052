package asterisque

// Remembered returns the bytes that are counted for the durable calls which n remembers.
func Remembered(n *Node) int {
	n.once.mu.Lock()
	defer n.once.mu.Unlock()
	return n.once.held.Bytes
}

// RememberedCall is what a call counts for whose answer is one byte.
const RememberedCall = heldRemember + keySize + 8
