// Package buffer lends memory for bytes on their way, so that moving them costs no allocation and an idle session holds none.
package buffer

import (
	"math/bits"
	"sync"
)

const (
	leastShift = 10 // the smallest pooled buffer has 1 KiB
	mostShift  = 22 // the largest one has 4 MiB

	// Least and Most are the sizes, in bytes, of the smallest and the largest buffer that is kept, without Slack.
	Least = 1 << leastShift
	Most  = 1 << mostShift

	// Slack is how many bytes each has besides: room for what a frame has around a payload, whose size is often a power of two.
	Slack = 128
)

// pools holds buffers that nobody uses; pools[i] those of 1<<(leastShift+i) bytes and Slack.
var pools [mostShift - leastShift + 1]sync.Pool

// Buffer is memory on loan.
type Buffer struct {
	B []byte // all of it
}

// Take returns a buffer of at least size bytes, rounded up to a power of two and Slack, which contains anything.
func Take(size int) *Buffer {
	if size > Most+Slack {
		return &Buffer{B: make([]byte, size)}
	}
	i := class(size)
	if b, ok := pools[i].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{B: make([]byte, Least<<i+Slack)}
}

// Release gives b back. It must not be used after that.
func (b *Buffer) Release() {
	if len(b.B) <= Most+Slack {
		pools[class(len(b.B))].Put(b)
	}
}

// Size returns how many bytes the buffer has that Take returns for size.
func Size(size int) int {
	if size > Most+Slack {
		return size
	}
	return Least<<class(size) + Slack
}

// Filled reports whether n bytes fill b to three quarters or more, so that b may wait somewhere for as long as they do.
func (b *Buffer) Filled(n int) bool { return 4*n >= 3*(len(b.B)-Slack) }

// Suits reports whether a buffer of n bytes has room for size of them and is not much larger than that.
func Suits(n, size int) bool { return size <= n && n < 2*max(size, Least) }

// Snug reports whether a buffer for size bytes is one that is kept, and has, without Slack, at most a third more.
func Snug(size int) bool { return size <= Most && size >= Least && size >= Least<<class(size)*3/4 }

// class returns which of the pools has buffers for size bytes.
func class(size int) int { return max(0, bits.Len(uint(max(size-Slack, 1)-1))-leastShift) }
