package wiretest

// ring keeps bytes in their order. Its memory grows as needed, and does not shrink.
type ring struct {
	buf  []byte
	head int // where the first byte is
	n    int
}

// write adds b at the end.
func (r *ring) write(b []byte) {
	if more := r.n + len(b); more > len(r.buf) {
		grown := make([]byte, max(2*len(r.buf), more))
		r.copyTo(grown)
		r.buf, r.head = grown, 0
	}
	end := r.head + r.n
	if end >= len(r.buf) {
		end -= len(r.buf)
	}
	k := copy(r.buf[end:], b)
	copy(r.buf, b[k:])
	r.n += len(b)
}

// read takes bytes from the front, as many as p has room for.
func (r *ring) read(p []byte) int {
	n := r.copyTo(p)
	r.skip(n)
	return n
}

// skip drops n bytes from the front.
func (r *ring) skip(n int) {
	if r.head += n; r.head >= len(r.buf) {
		r.head -= len(r.buf)
	}
	r.n -= n
}

func (r *ring) copyTo(p []byte) int {
	p = p[:min(len(p), r.n)]
	k := copy(p, r.buf[r.head:])
	copy(p[k:], r.buf)
	return len(p)
}
