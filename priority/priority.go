// Package priority orders the messages that leave a session. A [Priority] ranks a pipe. A [Queue]
// holds the messages that did not fit into the batch that is being written. Queue and [Lines] can
// also be used alone.
package priority

// Priority ranks a pipe among the other pipes of its session. A higher priority is sent first. It
// is fixed when the pipe opens.
type Priority int8

const (
	Min    Priority = -128
	Normal Priority = 0
	Max    Priority = 127
)

// Up returns the next higher priority, and Max for Max.
func (p Priority) Up() Priority {
	if p == Max {
		return Max
	}
	return p + 1
}

// Down returns the next lower priority, and Min for Min.
func (p Priority) Down() Priority {
	if p == Min {
		return Min
	}
	return p - 1
}
