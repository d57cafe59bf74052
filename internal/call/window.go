package call

import (
	"container/list"
	"context"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/priority"
)

// callWindow bounds the outstanding calls of one function at one peer. Further calls wait by
// priority, and among equals in order of arrival, and do not delay other functions.
type callWindow struct {
	size int // fixed

	mu    sync.Mutex
	calls int // guarded by mu, as all below; outstanding
	queue windowQueue
	bytes int // held by waiting calls
}

// windowQueue holds the calls that wait for a window, by priority: each is a channel that is closed
// when the call may be made. No line is empty.
type windowQueue struct {
	lines map[priority.Priority]*list.List
	len   int
}

func (q *windowQueue) push(p priority.Priority, turn chan struct{}) *list.Element {
	line := q.lines[p]
	if line == nil {
		if q.lines == nil {
			q.lines = make(map[priority.Priority]*list.List)
		}
		line = list.New()
		q.lines[p] = line
	}
	q.len++
	return line.PushBack(turn)
}

func (q *windowQueue) remove(p priority.Priority, e *list.Element) chan struct{} {
	line := q.lines[p]
	turn := line.Remove(e).(chan struct{})
	if line.Len() == 0 {
		delete(q.lines, p)
	}
	q.len--
	return turn
}

// pop removes the next call; it returns nil if none waits.
func (q *windowQueue) pop() chan struct{} {
	if q.len == 0 {
		return nil
	}
	highest := priority.Min
	for p := range q.lines {
		highest = max(highest, p)
	}
	return q.remove(highest, q.lines[highest].Front())
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
	place := w.queue.push(p, turn)
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
	if a == nil {
		return nil
	}
	select {
	case <-turn:
		w.giveBackLocked() // its turn came at the same moment
	default:
		w.queue.remove(p, place)
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
	next := w.queue.pop()
	if next == nil {
		w.calls--
		return
	}
	close(next)
}

// used returns the use of the window.
func (w *callWindow) used() WindowUse {
	if w == nil {
		return WindowUse{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return WindowUse{Window: w.size, Calls: w.calls, Waiting: w.queue.len, Bytes: w.bytes}
}

// WindowUse is the use of the window of a function.
type WindowUse struct {
	// maximum of outstanding calls; 0: no limit, and then the other fields are not counted
	Window  int
	Calls   int // made, and not answered
	Waiting int // calls that wait for the window
	Bytes   int // held by these: their parameters are encoded
}
