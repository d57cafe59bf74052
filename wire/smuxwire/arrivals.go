package smuxwire

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// perFrame is the memory that an unread frame costs the library besides its payload.
const perFrame = 64

// receiveBuffer is the unread content of a stream. The library counts payloads only, and relies on
// the sender to keep to its window. Totals are modulo 2^32, as on the wire.
type receiveBuffer struct {
	granted uint32             // total bytes that the peer may send
	bytes   uint32             // that it has sent
	sizes   fifo.Queue[uint16] // of the unread frames
	read    int                // bytes of the first of them
}

// arrived counts a frame.
func (a *receiveBuffer) arrived(bytes int, c *frameCounter) {
	a.bytes += uint32(bytes)
	a.sizes.Push(uint16(bytes))
	c.joined(a.sizes.Len())
}

// excess returns how many bytes the peer has sent beyond its grant.
func (a *receiveBuffer) excess() int { return max(int(int32(a.bytes-a.granted)), 0) }

// taken counts bytes that were read.
func (a *receiveBuffer) taken(bytes int, c *frameCounter) {
	for bytes > 0 && a.sizes.Len() > 0 {
		left := int(*a.sizes.Peek()) - a.read
		if bytes < left {
			a.read += bytes
			return
		}
		bytes, a.read = bytes-left, 0
		a.pop(c)
	}
}

func (a *receiveBuffer) pop(c *frameCounter) {
	a.sizes.Pop()
	c.left(a.sizes.Len())
	if a.sizes.Len() == 0 && a.sizes.Held() > 4*perFrame {
		a.sizes = fifo.Queue[uint16]{}
	}
}

// forget is for a stream that is over.
func (a *receiveBuffer) forget(c *frameCounter) {
	for a.sizes.Len() > 0 {
		a.pop(c)
	}
}

// frameCounter counts the unread frames on all streams of a connection. Its methods may be called
// concurrently.
type frameCounter struct {
	most, mostOfOne int // of all streams together, and of one; fixed

	frames  atomic.Int64
	crowded atomic.Int64  // streams with mostOfOne or more
	fewer   chan struct{} // has room for one; receives when the crowd is no longer full
}

func newCrowd(most, mostOfOne int) *frameCounter {
	return &frameCounter{most: most, mostOfOne: mostOfOne, fewer: make(chan struct{}, 1)}
}

// full reports whether the number of frames is at a limit.
func (c *frameCounter) full() bool { return c.frames.Load() >= int64(c.most) || c.crowded.Load() > 0 }

// joined counts one more frame of a stream, which has now frames in total.
func (c *frameCounter) joined(now int) {
	c.frames.Add(1)
	if now == c.mostOfOne {
		c.crowded.Add(1)
	}
}

// left counts one frame less.
func (c *frameCounter) left(now int) {
	enough := c.frames.Add(-1) == int64(c.most)-1
	if now == c.mostOfOne-1 && c.crowded.Add(-1) == 0 {
		enough = true
	}
	if enough {
		select {
		case c.fewer <- struct{}{}:
		default:
		}
	}
}
