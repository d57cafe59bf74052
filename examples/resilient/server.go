package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
)

// The contract: each caller numbers its calls, and gets the number back.
var count = asterisque.Func[order, uint64](1, "count")

type order struct {
	Caller int    // 0..callers-1
	N      uint64 // from 1, without a gap
}

// server checks that the calls of each caller arrive once each, and in order.
type server struct {
	doubled, skipped atomic.Int64

	mu   sync.Mutex
	last [callers]uint64 // guarded by mu
}

func (s *server) service() *asterisque.Service {
	svc := asterisque.NewService()
	count.Handle(svc, s.count)
	return svc
}

func (s *server) count(_ context.Context, o order) (uint64, error) {
	if o.Caller < 0 || o.Caller >= callers {
		return 0, asterisque.ErrBadParams.Withf("caller %d", o.Caller)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[o.Caller]
	switch {
	case o.N <= last:
		s.doubled.Add(1)
		return 0, fmt.Errorf("call %d of caller %d has come before", o.N, o.Caller)
	case o.N > last+1:
		s.skipped.Add(int64(o.N - last - 1))
	}
	s.last[o.Caller] = o.N
	return o.N, nil
}
