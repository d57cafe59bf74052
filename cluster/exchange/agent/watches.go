package agent

import (
	"context"
	"sync"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// nameWatches are the watches of names in use, one for each name, shared by all Pools.
type nameWatches struct {
	mu     sync.Mutex
	of     map[string]*nameWatch // by name; guarded by mu, as closed
	closed bool                  // no more watches are added
}

// nameWatch is the state of the nodes of a name.
type nameWatch struct {
	end  context.CancelFunc // ends its goroutine; fixed
	uses int                // guarded by nameWatches.mu

	changed wait.Notice

	mu      sync.Mutex
	known   bool     // the exchange has sent the nodes; guarded by mu, as all below
	members []Member // as last sent
	err     error    // why the members are not current; nil: they are
}

// use returns the watch of a name, and a function that releases it.
func (a *Agent) use(name string) (w *nameWatch, leave func()) {
	ws := &a.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w = ws.of[name]; w == nil {
		w = a.watchLocked(name)
	}
	w.uses++
	return w, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if w.uses--; w.uses == 0 {
			w.end()
			delete(ws.of, name)
		}
	}
}

// watchLocked begins to watch a name, unless the agent is closed.
func (a *Agent) watchLocked(name string) *nameWatch {
	ctx, end := context.WithCancel(a.ctx)
	w, ws := &nameWatch{end: end}, &a.watches
	if ws.of == nil {
		ws.of = make(map[string]*nameWatch)
	}
	ws.of[name] = w
	if !ws.closed {
		a.running.Go(func() { a.keep(ctx, name, w) }) // ends with ctx
	}
	return w
}

// close rejects further watches. The present ones end with the agent.
func (ws *nameWatches) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
}

// keep keeps the watch of a name current, until ctx ends.
func (a *Agent) keep(ctx context.Context, name string, w *nameWatch) {
	for ctx.Err() == nil {
		err := a.watch(ctx, name, func(members []Member) bool {
			w.set(func() { w.known, w.members, w.err = true, members, nil })
			return true
		})
		w.set(func() { w.err = err })
		wait.HoldOff(ctx, again)
	}
}

// set calls change with the lock held, and notifies waiting goroutines.
func (w *nameWatch) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.changed.Signal()
}

// now returns the present state. Before the exchange has sent any, known is false and err may be
// nil.
func (w *nameWatch) now() (members []Member, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members, w.known, w.err
}
