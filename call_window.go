package asterisque

import (
	"container/list"
	"context"
	"sync"
)

// callWindow bounds how many calls of one function are outstanding towards one peer. Calls beyond
// it wait in the order in which they came, and hold up no other function.
type callWindow struct {
	size int // fixed

	mu    sync.Mutex
	calls int       // guarded by mu, as queue; outstanding
	queue list.List // of chan struct{}, each closed when its call may be made
}

// wait waits for room until ctx or over, the context of the session, ends: at the front of the
// queue or at its end.
func (w *callWindow) wait(ctx, over context.Context, front bool) *Abort {
	w.mu.Lock()
	if w.calls < w.size {
		w.calls++
		w.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	push := w.queue.PushBack
	if front {
		push = w.queue.PushFront
	}
	place := push(turn)
	w.mu.Unlock()
	var a *Abort
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		a = neverSent(contextError(ctx))
	case <-over.Done():
		a = neverSent(context.Cause(over))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-turn:
		w.giveBackLocked() // its turn came at the same moment
	default:
		w.queue.Remove(place)
	}
	return a
}

// giveBack is called when a call is over. The next one goes at once. Without a window it does
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
	next := w.queue.Front()
	if next == nil {
		w.calls--
		return
	}
	close(w.queue.Remove(next).(chan struct{}))
}

// used tells how much of the window is used.
func (w *callWindow) used() Outstanding {
	if w == nil {
		return Outstanding{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return Outstanding{Window: w.size, Calls: w.calls, Waiting: w.queue.Len()}
}

// Outstanding tells how much of the window of a function is used; see [WithCallWindow].
type Outstanding struct {
	// how many calls may be outstanding; 0: any number, and then the others are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // that wait for the window
}

// Full reports whether another call would have to wait.
func (o Outstanding) Full() bool { return o.Window > 0 && o.Calls >= o.Window }

// waitForWindow waits for room in the window of a function, if there is one, and returns it. It is
// not for calls within others, which may be waited for by one that holds its room.
func (o *outgoing) waitForWindow(ctx context.Context, function uint16, front bool) (*callWindow, *Abort) {
	w := o.windows[function]
	if w == nil {
		return nil, nil
	}
	if a := w.wait(ctx, o.ctx, front); a != nil {
		return nil, a
	}
	return w, nil
}
