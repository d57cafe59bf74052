package fifo

// fewChunks is the number of unused places that a list of chunks may keep.
const fewChunks = 8

// chunks is the chunks of a Queue after the first, which is full if there are any.
type chunks[T any] struct {
	chunks [][]T // chunks[head:] hold values; all but the last are full
	head   int
	spare  []T // nil, or an empty chunk, so that a Queue of constant length allocates nothing
}

func (r *chunks[T]) empty() bool { return len(r.chunks) == r.head }

// len returns the number of values in r.
func (r *chunks[T]) len() int {
	last := len(r.chunks) - 1
	if last < r.head {
		return 0
	}
	return (last-r.head)*perChunk[T]() + len(r.chunks[last])
}

// at returns the value with i older ones in r.
func (r *chunks[T]) at(i int) *T {
	n := perChunk[T]()
	return &r.chunks[r.head+i/n][i%n]
}

func (r *chunks[T]) push(v T) {
	last := len(r.chunks) - 1
	if r.empty() || len(r.chunks[last]) == cap(r.chunks[last]) {
		r.extend()
		last = len(r.chunks) - 1
	}
	r.chunks[last] = append(r.chunks[last], v)
}

// extend adds an empty chunk.
func (r *chunks[T]) extend() {
	if len(r.chunks) == cap(r.chunks) && r.head > len(r.chunks)/2 { // most of the list is spent
		listed := copy(r.chunks, r.chunks[r.head:])
		clear(r.chunks[listed:])
		r.chunks, r.head = r.chunks[:listed], 0
	}
	c := r.spare
	if c == nil {
		c = make([]T, 0, perChunk[T]())
	}
	r.chunks, r.spare = append(r.chunks, c), nil
}

// shift removes the first chunk and returns it.
func (r *chunks[T]) shift() []T {
	c := r.chunks[r.head]
	r.chunks[r.head] = nil
	r.head++
	r.fit()
	return c
}

// popLast removes and returns the newest value.
func (r *chunks[T]) popLast() T {
	var zero T
	c := &r.chunks[len(r.chunks)-1]
	last := len(*c) - 1
	v := (*c)[last]
	(*c)[last] = zero
	*c = (*c)[:last]
	if last == 0 {
		r.spare, *c = *c, nil
		r.chunks = r.chunks[:len(r.chunks)-1]
		r.fit()
	}
	return v
}

// fit shortens the list of chunks if it was made for many more.
func (r *chunks[T]) fit() {
	if listed := r.chunks[r.head:]; cap(r.chunks) > 4*len(listed)+fewChunks {
		r.chunks, r.head = append([][]T(nil), listed...), 0
	}
}
