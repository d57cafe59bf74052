package cborhead

// Shorten lets the next item pass, although its head is longer than it must be.
func (r *Reader) Shorten() *Reader {
	if major, n, size := r.lenientHead(); size > 1 && (major != Other || size == 2 && n < 32) {
		r.splice(size, AppendHead(nil, major, n))
	}
	return r
}

// Untag lets the next item pass as if it had no tags.
func (r *Reader) Untag() *Reader {
	for major, _, size := r.lenientHead(); size > 0 && major == Tag; major, _, size = r.lenientHead() {
		r.splice(size, nil)
	}
	return r
}

// As lets the next item pass as one of another type.
func (r *Reader) As(from, to byte) *Reader {
	if r.At < len(r.Data) && r.Data[r.At]&^31 == from {
		r.splice(1, []byte{to | r.Data[r.At]&31})
	}
	return r
}

// Definite lets the next item pass as if it said its length.
func (r *Reader) Definite() *Reader {
	if r.At >= len(r.Data) || r.Data[r.At]&31 != 31 {
		return r
	}
	major := r.Data[r.At] &^ 31
	probe := Reader{Data: r.Data, At: r.At + 1}
	var n uint64
	var content []byte
	for probe.Err == nil && probe.At < len(probe.Data) && probe.Data[probe.At] != 0xff {
		if from := probe.At; major == Bytes || major == Text {
			content = append(content, probe.str("chunk", major)...)
		} else {
			probe.Skip()
			content = append(content, probe.Data[from:max(from, probe.At)]...)
		}
		n++
	}
	if probe.Err != nil || probe.At >= len(probe.Data) {
		return r
	}
	switch major {
	case Map:
		n /= 2
	case Bytes, Text:
		n = uint64(len(content))
	}
	r.splice(probe.At+1-r.At, append(AppendHead(nil, major, n), content...))
	return r
}

// lenientHead returns the next head in whatever form it has; size is 0 if there is none.
func (r *Reader) lenientHead() (major byte, n uint64, size int) {
	if r.At >= len(r.Data) {
		return 0, 0, 0
	}
	first := r.Data[r.At]
	if first&31 < 24 {
		return first &^ 31, uint64(first & 31), 1
	}
	size = 1 + 1<<(first&3)
	if first&31 > 27 || len(r.Data)-r.At < size {
		return 0, 0, 0
	}
	for _, b := range r.Data[r.At+1 : r.At+size] {
		n = n<<8 | uint64(b)
	}
	return first &^ 31, n, size
}

// splice puts something else in the place of the next size bytes.
func (r *Reader) splice(size int, b []byte) {
	rest := r.Data[r.At+size:]
	r.Data = append(append(append([]byte{}, r.Data[:r.At]...), b...), rest...)
}
