package asterisque

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// waitKind is what somebody waits for.
type waitKind uint8

const (
	waitWindow   waitKind = iota // room here for the window of a stream that this side opens
	waitOpens                    // room at the peer for calls
	waitOutbound                 // the outbound soft limit
	waitKinds
)

// Wait tells how often something had to wait for one thing.
type Wait struct {
	Now   int           `json:"now"`    // that wait
	Bytes int           `json:"bytes"`  // that these hold: what they send is encoded
	Times uint64        `json:"times"`  // since the beginning
	For   time.Duration `json:"for_ns"` // in all, of those that wait no longer
}

// String returns w for logs.
func (w Wait) String() string {
	return fmt.Sprintf("%d now with %d bytes, %d times, %v", w.Now, w.Bytes, w.Times, w.For)
}

// ended returns what is left of w when nobody waits any more.
func (w Wait) ended() Wait { return Wait{Times: w.Times, For: w.For} }

func (w *Wait) add(o Wait) {
	w.Now += o.Now
	w.Bytes += o.Bytes
	w.Times += o.Times
	w.For += o.For
}

// waits count who waits. Sessions in which nobody has waited have none of it.
type waits struct {
	counts atomic.Pointer[[waitKinds]waitCount]
}

type waitCount struct {
	now     atomic.Int32
	bytes   atomic.Int64
	times   atomic.Uint64
	elapsed atomic.Int64 // in nanoseconds
}

// begin notes that a caller waits with bytes of what it sends, until the returned function is
// called. clock measures the wait.
func (w *waits) begin(clock *uptime, kind waitKind, bytes int) (end func()) {
	c := w.counts.Load()
	if c == nil {
		w.counts.CompareAndSwap(nil, new([waitKinds]waitCount))
		c = w.counts.Load()
	}
	began := clock.now()
	c[kind].now.Add(1)
	c[kind].bytes.Add(int64(bytes))
	c[kind].times.Add(1)
	return func() {
		c[kind].now.Add(-1)
		c[kind].bytes.Add(-int64(bytes))
		c[kind].elapsed.Add(int64(clock.now() - began))
	}
}

// load returns what is known of one kind.
func (w *waits) load(kind waitKind) Wait {
	c := w.counts.Load()
	if c == nil {
		return Wait{}
	}
	return Wait{Now: int(c[kind].now.Load()), Bytes: int(c[kind].bytes.Load()), Times: c[kind].times.Load(), For: time.Duration(c[kind].elapsed.Load())}
}

// waitedFor is contextError, which says what the wait was for.
func waitedFor(ctx context.Context, format string, args ...any) *Abort {
	a := contextError(ctx)
	a.Message = fmt.Sprintf("%s, waiting for "+format, append([]any{a.Message}, args...)...)
	return a
}
