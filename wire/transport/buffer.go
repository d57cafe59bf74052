package transport

import "github.com/asterisque-go/asterisque/internal/buffer"

// Buffer is pooled memory for frames that a Wire reads. It has one owner at a time: the Wire that
// took it, and then the session that the Wire transfers it to (see Keep of wire.Buffered). The
// owner releases it with Release, or leaves it to the garbage collector.
type Buffer struct {
	B []byte // all of it
}

// TakeBuffer returns a Buffer of at least size bytes, with arbitrary content. Up to 4 MiB it has at
// most a 16th more, or 1 KiB.
func TakeBuffer(size int) *Buffer { return (*Buffer)(buffer.Take(size)) }

// Release returns b to the pool. b may not be used after that.
func (b *Buffer) Release() { (*buffer.Buffer)(b).Release() }

// Fits reports whether n bytes fill b well enough to keep b as long as they are needed: it has at
// most an eighth more, about.
func (b *Buffer) Fits(n int) bool { return (*buffer.Buffer)(b).Filled(n) }
