package call

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
)

// waitKind is the resource of a wait.
type waitKind uint8

const (
	waitWindow   waitKind = iota // budget here for the window of a stream that this side opens
	waitOpens                    // budget of the peer for calls
	waitOutbound                 // the outbound soft limit
	waitKinds
)

// Wait counts the waits for one resource.
type Wait struct {
	Now   int           // present waits
	Bytes int           // bytes that these hold: their messages are encoded
	Times uint64        // waits since the beginning
	For   time.Duration // total time of waits that have ended
}

// waitCounts counts waits. Sessions without a wait allocate no counters.
type waitCounts struct {
	counts atomic.Pointer[[waitKinds]waitCounter]
}

type waitCounter struct {
	now     atomic.Int32
	bytes   atomic.Int64
	times   atomic.Uint64
	elapsed atomic.Int64 // in nanoseconds
}

// begin counts a caller that waits with bytes of encoded data, until the returned function is
// called. clock measures the wait.
func (w *waitCounts) begin(clock *Clock, kind waitKind, bytes int) (end func()) {
	c := w.counts.Load()
	if c == nil {
		w.counts.CompareAndSwap(nil, new([waitKinds]waitCounter))
		c = w.counts.Load()
	}
	began := clock.Now()
	c[kind].now.Add(1)
	c[kind].bytes.Add(int64(bytes))
	c[kind].times.Add(1)
	return func() {
		c[kind].now.Add(-1)
		c[kind].bytes.Add(-int64(bytes))
		c[kind].elapsed.Add(int64(clock.Now() - began))
	}
}

// load returns the counts of one kind.
func (w *waitCounts) load(kind waitKind) Wait {
	c := w.counts.Load()
	if c == nil {
		return Wait{}
	}
	return Wait{Now: int(c[kind].now.Load()), Bytes: int(c[kind].bytes.Load()), Times: c[kind].times.Load(), For: time.Duration(c[kind].elapsed.Load())}
}

// WaitedFor is OfContext with the resource of the wait.
func WaitedFor(ctx context.Context, format string, args ...any) *codec.Abort {
	a := aborts.OfContext(ctx)
	a.Message = fmt.Sprintf("%s, waiting for "+format, append([]any{a.Message}, args...)...)
	return a
}
