package fifo_test

import (
	"fmt"
	"testing"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// value has the size of most queued values of a session.
type value struct {
	number int
	_      []byte
	_      [4]int
}

func BenchmarkQueue(b *testing.B) {
	b.Run("64B", func(b *testing.B) { benchmark(b, func(i int) value { return value{number: i} }) })
	v := new(value)
	b.Run("pointer", func(b *testing.B) { benchmark(b, func(int) *value { return v }) })
}

func benchmark[T any](b *testing.B, value func(int) T) {
	for _, n := range []int{1, 2, 16, 10_000} {
		b.Run(fmt.Sprintf("reused/%d", n), func(b *testing.B) { // push n, then pop all
			var q fifo.Queue[T]
			b.ReportAllocs()
			for b.Loop() {
				fill(&q, n, value)
				for range n {
					q.Pop()
				}
			}
		})
		b.Run(fmt.Sprintf("new/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var q fifo.Queue[T]
				fill(&q, n, value)
				for q.Len() > 0 {
					q.Pop()
				}
			}
		})
		b.Run(fmt.Sprintf("steady/%d", n), func(b *testing.B) {
			// one is pushed and one popped while n wait
			var q fifo.Queue[T]
			fill(&q, n, value)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Push(value(i))
				q.Pop()
			}
		})
	}
	b.Run("last/10000", func(b *testing.B) { // one is pushed and popped again while n wait
		var q fifo.Queue[T]
		fill(&q, 10_000, value)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			q.Push(value(i))
			q.PopLast()
		}
	})
	b.Run("at/10000", func(b *testing.B) { // all are read
		var q fifo.Queue[T]
		fill(&q, 10_000, value)
		for b.Loop() {
			for i := range q.Len() {
				q.At(i)
			}
		}
	})
	b.Run("filter/10000", func(b *testing.B) { // one of 10,000 is removed, and another one pushed
		var q fifo.Queue[T]
		fill(&q, 10_000, value)
		b.ReportAllocs()
		for b.Loop() {
			i := 0
			q.Filter(func(*T) bool { i++; return i != 5000 })
			q.Push(value(0))
		}
	})
}

func fill[T any](q *fifo.Queue[T], n int, value func(int) T) {
	for i := range n {
		q.Push(value(i))
	}
}
