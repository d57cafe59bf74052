// Package buffer provides pooled memory for bytes in transit, so that their transfer needs no
// allocation and an idle session holds no memory.
package buffer

import "sync"

// pools holds the unused buffers; pools[i] those of class i.
var pools [classes]sync.Pool

// Buffer is pooled memory.
type Buffer struct {
	B []byte // all of it
}

// Take returns a buffer of at least size bytes with arbitrary content. Up to Most, its size exceeds
// size, or Least, by at most a 16th.
func Take(size int) *Buffer {
	if size > Most {
		return &Buffer{B: make([]byte, size)}
	}
	i := class(size)
	if b, ok := pools[i].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{B: make([]byte, classSize(i))}
}

// Release returns b to its pool. b must not be used afterwards. A Buffer that Take has not made is
// left to the garbage collector.
func (b *Buffer) Release() {
	if len(b.B) > Most {
		return
	}
	if i := class(len(b.B)); classSize(i) == len(b.B) {
		pools[i].Put(b)
	}
}

// overhead is the count of a message besides its content, in bytes: see package flow.
const overhead = 512

// tight reports whether n bytes may wait in memory of the given size: it exceeds the count of a
// message of n bytes by at most a 16th, as a buffer that Take returns for n does.
func tight(size, n int) bool { return steps*size <= (steps+1)*(n+overhead) }

// Filled reports whether n bytes fill b so far that b may wait together with them.
func (b *Buffer) Filled(n int) bool { return tight(len(b.B), n) }

// Fills reports whether n bytes fill the buffer that Take returns for size, in the sense of Filled.
func Fills(n, size int) bool { return size <= Most && tight(classSize(class(size)), n) }

// Suits reports whether a buffer of n bytes has room for size bytes and is less than about twice as
// large.
func Suits(n, size int) bool { return size <= n && n < 2*max(size, Least) }

// Snug reports whether size bytes are better copied to a buffer than to a separate allocation:
// there are buffers of about that size.
func Snug(size int) bool { return size >= Least && size <= Most }
