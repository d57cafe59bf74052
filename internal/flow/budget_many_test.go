package flow_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// TestBudget_Concurrent has many streams begin, open, ask, grow, wait, withdraw and end
// concurrently. The Room never grants more than it has, grants no waiter twice, and gets everything
// back in the end.
func TestBudget_Concurrent(t *testing.T) {
	const goroutines, rounds = 16, 2000
	p := newPlan(t, limits.Amount{Bytes: mib}, 64*kib, 4)
	r := flow.NewBudget(&p)
	room := (p.Workers+p.Callers)*p.Window + p.Elastic
	var waited, gaveUp, late atomic.Int64

	// wait waits until c is granted or patience runs out, and reports whether c got its room.
	wait := func(rnd *rand.Rand, c *flow.Waiter, granted *atomic.Int32) bool {
		waited.Add(1)
		for range rnd.IntN(50) {
			if granted.Load() > 0 {
				return true
			}
			runtime.Gosched()
		}
		withdrawn, others := r.Withdraw(c)
		flow.Grant(others)
		if withdrawn {
			gaveUp.Add(1)
			return false
		}
		late.Add(1)
		for granted.Load() == 0 { // Granted is about to be called
			runtime.Gosched()
		}
		return true
	}
	var busy atomic.Int32 // workers
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 6))
			waiter := func(bytes int) (*flow.Waiter, *atomic.Int32) {
				granted := new(atomic.Int32)
				return &flow.Waiter{Priority: priority.Priority(rnd.IntN(3)), Bytes: bytes, Granted: func(bool) {
					if granted.Add(1) > 1 {
						t.Error("a waiter was granted twice")
					}
				}}, granted
			}
			for range rounds {
				var h flow.Window
				switch rnd.IntN(4) {
				case 0:
					if busy.Add(1) <= int32(p.Workers) {
						r.Begin(&h)
					} else {
						busy.Add(-1)
					}
				case 1:
					r.Lend(&h)
				default:
					c, granted := waiter(0)
					if r.Acquire(flow.Made, c) || wait(rnd, c, granted) {
						r.Opened(c, &h)
					}
				}
				for range rnd.IntN(8) {
					if h.Base == 0 {
						break
					}
					runtime.Gosched() // so that other goroutines hold room at the same time
					switch rnd.IntN(4) {
					case 0:
						flow.Grant(r.Took(&h))
					case 1:
						flow.Grant(r.Grow(&h, 2*h.Bytes(), h.Bytes()/2))
					case 2:
						flow.Grant(r.Shrink(&h, h.Bytes()/2))
					case 3:
						flow.Grant(r.Grow(&h, h.Bytes()+uint64(rnd.IntN(10*kib)), h.Bytes()))
					}
					if l := loadOf(r); l.Windows > room || l.Large > p.Large {
						t.Errorf("%+v is promised, and there is room for %d and %d", l, room, p.Large)
					}
				}
				if rnd.IntN(3) == 0 {
					c, granted := waiter(1 + rnd.IntN(p.Large))
					if r.Acquire(flow.Large, c) || wait(rnd, c, granted) {
						runtime.Gosched()
						if rnd.IntN(4) == 0 && c.Source() == flow.Large {
							ok, granted := r.Move(c.Bytes)
							if flow.Grant(granted); ok {
								flow.Grant(r.Release(flow.Elastic, c.Bytes))
								c.Bytes = 0
							}
						}
						flow.Grant(r.Release(c.Source(), c.Bytes))
					}
				}
				served := h.Class == flow.Served
				if flow.Grant(r.End(&h)); served {
					busy.Add(-1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, loadOf(r), "all of it is back")
	require.Positive(t, waited.Load())
	require.Positive(t, gaveUp.Load())
	for range p.Workers {
		begin(t, r)
	}
	for range p.Callers {
		open(t, r)
	}
	t.Logf("%d have waited, %d have given up, %d at the moment in which their turn came", waited.Load(), gaveUp.Load(), late.Load())
}

// BenchmarkRoom has one stream after the other begin, take and end.
func BenchmarkRoom(b *testing.B) {
	p := defaults(b)
	r := flow.NewBudget(&p)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var h flow.Window
			r.Lend(&h)
			r.Took(&h)
			r.Grow(&h, h.Bytes(), 0)
			r.End(&h)
		}
	})
}
