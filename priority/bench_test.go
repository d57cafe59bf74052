package priority_test

import (
	"fmt"
	"testing"

	"github.com/asterisque-go/asterisque/priority"
)

// BenchmarkLines pushes values, and pops them all.
func BenchmarkLines(b *testing.B) {
	v := new(int)
	for _, n := range []int{1, 16, 10_000} {
		for _, levels := range []int{1, 2, 7, 256} {
			for _, p := range []priority.Priority{priority.Normal, 1} { // the first level
				b.Run(fmt.Sprintf("%d/levels=%d/from=%d", n, levels, p), func(b *testing.B) {
					var l priority.Lines[*int]
					b.ReportAllocs()
					for b.Loop() {
						for i := range n {
							l.Push(priority.Priority(i%levels)+p, v)
						}
						for range n {
							l.Pop()
						}
					}
				})
			}
		}
	}
}

// large has the size of a message of a session.
type large [21]int

// BenchmarkFlows pushes messages of some flows, and pops them all.
func BenchmarkFlows(b *testing.B) {
	for _, n := range []int{1, 16, 10_000} {
		for _, flows := range []int{1, 4, 1000} {
			if flows > n {
				continue
			}
			b.Run(fmt.Sprintf("%d/flows=%d", n, flows), func(b *testing.B) {
				var q priority.Queue[large]
				fs := make([]priority.Flow[large], flows)
				b.ReportAllocs()
				for b.Loop() {
					for i := range n {
						q.Push(&fs[i%flows], large{}, 100)
					}
					for range n {
						q.Pop()
					}
				}
			})
		}
	}
}

// BenchmarkFlows_TakeTurns pushes messages of many flows while some wait.
func BenchmarkFlows_TakeTurns(b *testing.B) {
	for _, waits := range []int{1, 100, 900} {
		b.Run(fmt.Sprint(waits), func(b *testing.B) {
			var q priority.Queue[large]
			fs := make([]priority.Flow[large], 1000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Push(&fs[i%len(fs)], large{}, 100)
				if i >= waits {
					q.Pop()
				}
			}
		})
	}
}
