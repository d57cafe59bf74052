package call

import (
	"context"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// callWindow bounds the outstanding calls of one function at one peer. Further calls wait by
// priority, and among equals in order of arrival, and do not delay other functions.
type callWindow struct {
	size int // fixed

	mu    sync.Mutex
	calls int // guarded by mu, as all below; outstanding
	queue flow.Queue
	bytes int // held by waiting calls
}

// wait waits for a place in the window until ctx or over, the context of the session, ends. The
// caller holds so many bytes meanwhile.
func (w *callWindow) wait(ctx, over context.Context, p priority.Priority, bytes int) *codec.Abort {
	w.mu.Lock()
	if w.calls < w.size {
		w.calls++
		w.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := &flow.Waiter{Priority: p, Granted: func(bool) { close(turn) }}
	w.queue.Push(place)
	w.bytes += bytes
	w.mu.Unlock()
	var a *codec.Abort
	select {
	case <-turn:
	case <-ctx.Done():
		a = aborts.NeverSent(aborts.OfContext(ctx))
	case <-over.Done():
		a = aborts.NeverSent(context.Cause(over))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= bytes
	if a != nil && !w.queue.Remove(place) {
		w.giveBackLocked() // its turn came at the same moment
	}
	return a
}

// giveBack is called when a call has ended. The next one starts at once. Without a window it does
// nothing.
func (w *callWindow) giveBack() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.giveBackLocked()
}

func (w *callWindow) giveBackLocked() {
	next := w.queue.First()
	if next == nil {
		w.calls--
		return
	}
	w.queue.Remove(next)
	next.Granted(true)
}

// used returns the use of the window.
func (w *callWindow) used() WindowUse {
	if w == nil {
		return WindowUse{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return WindowUse{Window: w.size, Calls: w.calls, Waiting: w.queue.Len(), Bytes: w.bytes}
}

// WindowUse is the use of the window of a function.
type WindowUse struct {
	// maximum of outstanding calls; 0: no limit, and then the other fields are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // calls that wait for the window
	Bytes   int // held by these: their parameters are encoded
}
