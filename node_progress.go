package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/internal/callback"
)

// progressPace is the minimum interval between reports of the progress of a Shutdown.
const progressPace = 100 * time.Millisecond

// shutdownProgress reports a Shutdown of a node to the hooks.
type shutdownProgress struct {
	node  *Node            // these are fixed
	until time.Time        // time at which running calls are cut; zero: never
	last  ShutdownProgress // last report; owned by the reporting goroutine
}

// LogAttrs implements callback.Source.
func (p *shutdownProgress) LogAttrs() []any { return []any{"node", p.node.cfg.id} }

// Closed implements callback.Source: it is never closed.
func (p *shutdownProgress) Closed() *bool { return new(bool) }

// tellProgress reports the progress of a Shutdown with ctx to the hooks, until the returned
// function is called. Only the first Shutdown of the node reports.
func (n *Node) tellProgress(ctx context.Context) (end func()) {
	if len(n.cfg.hooks.shutdown) == 0 || n.drain.told.Swap(true) {
		return func() {}
	}
	p := &shutdownProgress{node: n}
	if n.cfg.drain > 0 {
		p.until = time.Now().Add(n.cfg.drain)
	}
	if at, ok := ctx.Deadline(); ok && (p.until.IsZero() || at.Before(p.until)) {
		p.until = at
	}
	p.look(true)
	over, ended := make(chan struct{}), make(chan struct{})
	go p.watch(over, ended) // ends when over is closed
	return func() {
		close(over)
		<-ended
		p.look(true)
	}
}

// watch reports changes until over is closed.
func (p *shutdownProgress) watch(over <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	t := time.NewTicker(progressPace)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.look(false)
		case <-over:
			return
		}
	}
}

// look reports the remaining sessions and calls, if they have changed or always is true.
func (p *shutdownProgress) look(always bool) {
	now := ShutdownProgress{Left: -1}
	for _, s := range p.node.Sessions() {
		now.Sessions++
		now.Calls += s.calls.Len()
	}
	if !always && now.Sessions == p.last.Sessions && now.Calls == p.last.Calls {
		return
	}
	p.last = now
	if !p.until.IsZero() {
		now.Left = max(0, time.Until(p.until))
	}
	hooks := &p.node.cfg.hooks
	f := hooks.shutdown
	p.node.reports.Add(p, callback.Report{Name: "Shutdown", Kind: callback.State, N: len(f), Call: func(i int) { f[i](now) }})
}
