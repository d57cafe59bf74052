package agent

import (
	"context"
	"sync"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// watches are the names that are in use, each asked for once, whatever number of Pools there is.
type watches struct {
	mu     sync.Mutex
	of     map[string]*watch // by name; guarded by mu, as closed
	closed bool              // there will be no others
}

// watch is what is known of the nodes of a name.
type watch struct {
	end  context.CancelFunc // ends what keeps it; fixed
	uses int                // guarded by mu of watches

	changed wait.Notice

	mu      sync.Mutex
	known   bool     // the exchange has told something; guarded by mu, as all below
	members []Member // what it has told last
	err     error    // why there is no news; nil: there are
}

// use returns the watch of a name, and a function to call when it is not needed any more.
func (a *Agent) use(name string) (w *watch, leave func()) {
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
func (a *Agent) watchLocked(name string) *watch {
	ctx, end := context.WithCancel(a.ctx)
	w, ws := &watch{end: end}, &a.watches
	if ws.of == nil {
		ws.of = make(map[string]*watch)
	}
	ws.of[name] = w
	if !ws.closed {
		a.running.Go(func() { a.keep(ctx, name, w) }) // ends with ctx
	}
	return w
}

// close lets no other watch begin. Those that there are end with the agent.
func (ws *watches) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
}

// keep keeps what is known of the nodes of a name, until ctx ends.
func (a *Agent) keep(ctx context.Context, name string, w *watch) {
	for ctx.Err() == nil {
		err := a.watch(ctx, name, func(members []Member) bool {
			w.set(func() { w.known, w.members, w.err = true, members, nil })
			return true
		})
		w.set(func() { w.err = err })
		wait.HoldOff(ctx, again)
	}
}

// set lets change change what is guarded, and wakes who waits for that.
func (w *watch) set(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.changed.Signal()
}

// now returns what is known; neither members nor err before the exchange has told anything.
func (w *watch) now() (members []Member, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members, w.known, w.err
}
