package call

import (
	"context"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// callWindow bounds the outstanding calls of one function at one peer. Further calls wait by
// priority, and among equals in order of arrival, and do not delay other functions.
type callWindow struct {
	size  int          // fixed
	queue flow.Credit  // in calls; locks itself
	bytes atomic.Int64 // held by waiting calls
}

// newCallWindow returns a window for size calls.
func newCallWindow(size int) *callWindow {
	w := &callWindow{size: size}
	w.queue.Init(int64(size), 0)
	return w
}

// wait waits for a place in the window until ctx or over, the context of the session, ends. The
// caller holds so many bytes meanwhile.
func (w *callWindow) wait(ctx, over context.Context, p priority.Priority, bytes int) *codec.Abort {
	t := w.queue.Acquire(p, 1)
	if t == nil {
		return nil
	}
	w.bytes.Add(int64(bytes))
	defer w.bytes.Add(-int64(bytes))
	select {
	case <-t.Turn():
		return nil
	case <-ctx.Done():
		w.queue.Leave(t)
		return aborts.NeverSent(aborts.OfContext(ctx))
	case <-over.Done():
		w.queue.Leave(t)
		return aborts.NeverSent(context.Cause(over))
	}
}

// giveBack is called when a call has ended. The next one starts at once. Without a window it does
// nothing.
func (w *callWindow) giveBack() {
	if w != nil {
		w.queue.Release(1)
	}
}

// used returns the use of the window.
func (w *callWindow) used() WindowUse {
	if w == nil {
		return WindowUse{}
	}
	return WindowUse{Window: w.size, Calls: w.size - int(w.queue.Left()), Waiting: w.queue.Len(), Bytes: int(w.bytes.Load())}
}

// WindowUse is the use of the window of a function.
type WindowUse struct {
	// maximum of outstanding calls; 0: no limit, and then the other fields are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // calls that wait for the window
	Bytes   int // held by these: their parameters are encoded
}
