// Package buffer lends memory for bytes on their way, so that moving them costs no allocation and
// an idle session holds none.
package buffer

import "sync"

// pools holds buffers that nobody uses; pools[i] those of class i.
var pools [classes]sync.Pool

// Buffer is memory on loan.
type Buffer struct {
	B []byte // all of it
}

// header is the size of a Buffer.
const header = 24

// Take returns a buffer of at least size bytes, whose content is anything. Up to Most, it has at
// most a 16th more than size or Least.
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

// Release gives b back. Nobody may use b after that. A Buffer that Take has not made is left to the
// garbage collector.
func (b *Buffer) Release() {
	if len(b.B) > Most {
		return
	}
	if i := class(len(b.B)); classSize(i) == len(b.B) {
		pools[i].Put(b)
	}
}

// Held returns how many bytes of memory b takes.
func (b *Buffer) Held() int {
	if len(b.B) <= Most {
		return int(held[class(len(b.B))])
	}
	return header + Allocated(len(b.B))
}

// small is how many bytes of memory need not be accounted for: what any message costs besides its
// content.
const small = 512

// tight reports whether memory for so many bytes is fit for n bytes that wait in it: it holds at
// most an eighth more than they may cost, or no more than memory of their own would.
func tight(size, n int) bool {
	takes := Allocated(size)
	return 8*takes <= 9*(n+small) || takes <= Allocated(n)
}

// Filled reports whether n bytes fill b so far that it may wait somewhere for as long as they do.
func (b *Buffer) Filled(n int) bool { return tight(len(b.B), n) }

// Fills reports whether n bytes fill the buffer that Take returns for size so far.
func Fills(n, size int) bool { return size <= Most && tight(classSize(class(size)), n) }

// Suits reports whether a buffer of n bytes has room for size of them and is not much larger than
// that.
func Suits(n, size int) bool { return size <= n && n < 2*max(size, Least) }

// Snug reports whether size bytes are better copied to a buffer than to memory of their own: there
// are buffers of about that size.
func Snug(size int) bool { return size >= Least && size <= Most }

// Copied returns how many bytes of memory a copy of n bytes takes: in a buffer, where there is one
// that is snug.
func Copied(n int) int {
	if Snug(n) {
		return int(held[class(n)])
	}
	return Allocated(n)
}
