package outbox

import "sync"

const (
	largeSize = 72 << 10 // a batch, and the Controls sent with it
	smallSize = 512      // a few small messages
)

// large and small hold the memory of batches. An idle session releases its memory, so that a
// thousand idle sessions hold none.
var (
	large = sync.Pool{New: func() any { return new([largeSize]byte) }}
	small = sync.Pool{New: func() any { return new([smallSize]byte) }}
)

// grow returns b with room for n more bytes.
func grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	var to []byte
	switch {
	case need <= smallSize:
		to = small.Get().(*[smallSize]byte)[:0]
	case need <= largeSize:
		to = large.Get().(*[largeSize]byte)[:0]
	default:
		to = make([]byte, 0, max(need, 2*cap(b)))
	}
	to = append(to, b...)
	freeBuffer(b)
	return to
}

// freeBuffer returns b to its pool, if it came from one.
func freeBuffer(b []byte) {
	switch cap(b) {
	case smallSize:
		small.Put((*[smallSize]byte)(b[:smallSize]))
	case largeSize:
		large.Put((*[largeSize]byte)(b[:largeSize]))
	}
}
