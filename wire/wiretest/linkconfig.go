package wiretest

import "time"

// LinkConfig configures a [Link].
type LinkConfig struct {
	// Out is for bytes sent by the first end of [Link.Pipe], by the end that [Link.Conn] returns,
	// and by the clients of a proxy. In is for the bytes that they receive.
	Out, In Lane

	// Buffer is how many bytes a connection of Pipe or Conn buffers while the queue is full, like
	// the send buffer of a socket: Write returns when no more than that wait for room in the queue.
	// 0 stands for 256 KiB.
	Buffer int

	// Seed seeds the length of each jitter. Any value is valid.
	Seed uint64
}

// Lane is one direction of a [Link].
type Lane struct {
	// Rate is the number of bytes per second. 0 means no limit, so that there is no queueing.
	Rate int

	// Delay is the latency of every byte after it has passed the bottleneck.
	Delay time.Duration

	// Jitter is the maximum additional latency of each segment. The segments of a connection stay
	// in order.
	Jitter time.Duration

	// Queue is how many bytes the bottleneck holds, waiting or passing. 0 stands for 256 KiB. A
	// larger segment fits into an empty queue.
	Queue int

	// Drop loses a segment that finds the queue full. It is sent once more, and so it passes a
	// round trip later, queue included. The segments behind it arrive with it: its reader receives
	// nothing for the sum of both delays. Until then a connection waits for room in the queue, as
	// it does without Drop, and loses nothing else. Segments have 1,448 bytes. Packets of UDP that
	// find the queue full are always lost, and for good.
	Drop bool

	// Changes are later configurations of the lane, in the order of their times.
	Changes []Change
}

// Change is the configuration of a [Lane] from a time to the next Change.
type Change struct {
	At            time.Duration // since the Link was made
	Rate          int           // as in Lane, as both below
	Delay, Jitter time.Duration
}

// LaneStats counts the bytes sent in one direction of a [Link].
type LaneStats struct {
	Queued  int   // bytes that are in the queue now
	Most    int   // bytes that were in the queue at once, at most
	Passed  int64 // bytes that have left the queue; they may be in flight
	Dropped int64 // segments and packets that were lost because the queue was full
}

// DefaultLinkBuffer is the default for both the queue of a [Lane] and the buffer of a connection
// through a [Link].
const DefaultLinkBuffer = 256 << 10
