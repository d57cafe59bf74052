// Package weigh estimates what a value takes in memory once it is decoded, from its bytes and its
// type, before anything is allocated. The codecs walk the bytes, each its own format, and say here
// what they meet.
package weigh

import (
	"math"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/buffer"
)

// most is beyond everything that can be allocated; sums stop there, and do not overflow.
const most = math.MaxInt / 4

// Tally adds up what decoding holds.
type Tally struct {
	limit, now, peak int
}

// NewTally returns a Tally that is over beyond limit.
func NewTally(limit int) Tally { return Tally{limit: limit} }

// Add counts n bytes.
func (t *Tally) Add(n int) {
	t.now = min(t.now+n, most)
	t.peak = max(t.peak, t.now)
}

// Drop takes back n bytes that nothing refers to any more.
func (t *Tally) Drop(n int) { t.now -= n }

// Now returns what is held now.
func (t *Tally) Now() int { return t.now }

// Over reports whether the limit is passed.
func (t *Tally) Over() bool { return t.peak > t.limit }

// Bytes returns the most that was held at once.
func (t *Tally) Bytes() int { return t.peak }

// Text counts a string or bytes whose encoding takes n bytes.
func (t *Tally) Text(n int) { t.Add(Alloc(n)) }

// Decoders go as deep as the data does, each level in the memory of the stack, which grows with
// them and stays for a while. That of the first levels is there anyway.
const (
	shallow = 32
	level   = 3 << 10 // with what is copied while it grows
)

// Enter counts what it takes to go from a value that stands depth deep to those in it, and Leave
// takes it back.
func (t *Tally) Enter(depth int) {
	if depth >= shallow {
		t.Add(level)
	}
}

// Leave is called when all values in one that stands depth deep have been weighed.
func (t *Tally) Leave(depth int) {
	if depth >= shallow {
		t.Drop(level)
	}
}

// Objects with pointers have a header, if they are neither small nor whole pages.
const (
	header     = 8
	headerFrom = 512
	pagesFrom  = 32<<10 - header
)

// Alloc returns what the allocator gives for n bytes, which may contain pointers.
func Alloc(n int) int {
	switch {
	case n > most/2:
		return most
	case n > headerFrom && n <= pagesFrom:
		n += header
	}
	return buffer.Allocated(n)
}

// Times returns n times size.
func Times(n, size int) int {
	if size > 0 && n > most/2/size {
		return most
	}
	return n * size
}

// Replaced returns how many bytes text has in which every byte that is not UTF-8 is replaced by
// three.
func Replaced(text []byte) int {
	if utf8.Valid(text) {
		return len(text)
	}
	n := 0
	for len(text) > 0 {
		_, size := utf8.DecodeRune(text)
		n += max(size, 3) // of one byte, it may be one that is replaced
		text = text[size:]
	}
	return n
}

// Sizes of what a decoder makes for an any.
const (
	Word   = 8   // a number
	String = 16  // what a string is besides its bytes
	Header = 24  // what a slice is besides its elements
	Iface  = 16  // an any
	Zone   = 176 // a time.Time with a zone of its own
)
