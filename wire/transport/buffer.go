package transport

import "github.com/asterisque-go/asterisque/internal/buffer"

// Buffer is memory on loan, for frames that a Wire reads. It has one owner at a time: the Wire
// that took it, and then the session that the Wire leaves it to (see Keep of wire.Buffered). The
// owner gives it back with Release, or leaves it to the garbage collector.
type Buffer struct {
	B []byte // all of it
}

// TakeBuffer returns a Buffer of at least size bytes, which hold anything. Up to 4 MiB it has at
// most a 16th more, or 1 KiB.
func TakeBuffer(size int) *Buffer { return (*Buffer)(buffer.Take(size)) }

// Release gives b back. Nobody may use it after that.
func (b *Buffer) Release() { (*buffer.Buffer)(b).Release() }

// Fits reports whether n bytes fill b so far that it may wait somewhere for as long as they do: it
// has at most an eighth more, about.
func (b *Buffer) Fits(n int) bool { return (*buffer.Buffer)(b).Filled(n) }
