package main

import (
	"io"
	"sync"
	"sync/atomic"
)

// meter counts received bytes per stream, as they arrive. A nil meter counts nothing.
type meter struct {
	mu     sync.Mutex
	counts []*atomic.Int64 // guarded by mu
}

// stream returns the counter of another stream.
func (m *meter) stream() *atomic.Int64 {
	n := new(atomic.Int64)
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.counts = append(m.counts, n)
	}
	return n
}

// reader returns r, and counts the bytes read from it.
func (m *meter) reader(r io.Reader) io.Reader {
	if m == nil {
		return r
	}
	return &meteredReader{r, m.stream()}
}

// now returns the count of each stream.
func (m *meter) now() (counts []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.counts {
		counts = append(counts, n.Load())
	}
	return counts
}

type meteredReader struct {
	r io.Reader
	n *atomic.Int64
}

func (m *meteredReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n.Add(int64(n))
	return n, err
}

// jain returns how evenly values are distributed: 1 if all are the same, 1/n if all but one are 0.
func jain(values []int64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(values)) * squares)
}
