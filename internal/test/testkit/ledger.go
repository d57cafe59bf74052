package testkit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
)

// Ledger is a service that records the calls of Work in the order of their start.
type Ledger struct {
	mu    sync.Mutex
	begun []int
	Svc   *asterisque.Service
}

// NewLedger returns a Ledger that runs serve for each call.
func NewLedger(serve func(ctx context.Context, n int) (int, error)) *Ledger {
	l := &Ledger{Svc: asterisque.NewService()}
	Work.Handle(l.Svc, func(ctx context.Context, n int) (int, error) {
		l.mu.Lock()
		l.begun = append(l.begun, n)
		l.mu.Unlock()
		return serve(ctx, n)
	})
	return l
}

// List returns the calls started so far.
func (l *Ledger) List() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]int(nil), l.begun...)
}

// UpTo returns the numbers from 0 to n-1.
func UpTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// Dreamers is a service with calls of Work that run until their contexts end. running is the number
// of running calls.
func Dreamers() (svc *asterisque.Service, running *atomic.Int64) {
	running = new(atomic.Int64)
	l := NewLedger(func(ctx context.Context, n int) (int, error) {
		running.Add(1)
		defer running.Add(-1)
		<-ctx.Done()
		return n, nil
	})
	Echo.Handle(l.Svc, func(_ context.Context, s string) (string, error) { return s, nil })
	return l.Svc, running
}
