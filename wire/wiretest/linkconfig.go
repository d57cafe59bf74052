package wiretest

import "time"

// LinkConfig says what a [Link] is like.
type LinkConfig struct {
	// Out is for what the first end of [Link.Pipe], the end that [Link.Conn] returns, and the
	// clients of a proxy send. In is for what they receive.
	Out, In Lane

	// Buffer is how many bytes a Write of a connection of Pipe or Conn hands over while the queue
	// is full, like the send buffer of a socket: Write returns when no more than that wait for room
	// in the queue. 0 stands for 256 KiB.
	Buffer int

	// Seed chooses how long each jitter is. Any value will do.
	Seed uint64
}

// Lane is one direction of a [Link].
type Lane struct {
	// Rate is how many bytes pass in a second. 0 is no limit, so that nothing waits.
	Rate int

	// Delay is how long every byte is under way once it has passed.
	Delay time.Duration

	// Jitter is up to how much longer than Delay each segment is under way. Nothing overtakes what
	// the same connection has sent before it.
	Jitter time.Duration

	// Queue is how many bytes the bottleneck holds, which wait or are passing. 0 stands for 256
	// KiB. A segment that is larger finds room in an empty queue.
	Queue int

	// Drop loses a segment that finds the queue full. It is sent once more, and so it passes a
	// round trip later, queue included. What is behind it arrives with it: for its reader a stream
	// stands still for as long as both delays. Until then a connection waits for room in the queue,
	// as it does without Drop, and loses nothing else. Segments have 1,448 bytes. Packets of UDP
	// that find the queue full are always lost, and for good.
	Drop bool

	// Changes are what becomes of the lane later, in the order of their times.
	Changes []Change
}

// Change is what a [Lane] is like from a time on, to the next Change.
type Change struct {
	At            time.Duration // since the Link was made
	Rate          int           // as that of Lane, as both below
	Delay, Jitter time.Duration
}

// LaneStats is what has become of what was sent in one direction of a [Link].
type LaneStats struct {
	Queued  int   // bytes that are in the queue now
	Most    int   // bytes that were in the queue at once, at most
	Passed  int64 // bytes that have left the queue; they may be under way
	Dropped int64 // segments and packets that were lost because the queue was full
}

// DefaultLinkBuffer is both the queue of a [Lane] and the buffer of a connection through a [Link]
// if nothing else is said.
const DefaultLinkBuffer = 256 << 10
