package asterisque

import (
	"context"
	"time"
)

// progressPace is how often the hooks are told of the progress of a Shutdown, at most.
const progressPace = 100 * time.Millisecond

// progress is what the hooks are told of a Shutdown of a node.
type progress struct {
	node  *Node            // these are fixed
	until time.Time        // when what still runs is cut; zero: never
	last  ShutdownProgress // that was told; belongs to whoever tells
}

// logged implements observed.
func (p *progress) logged() []any { return []any{"node", p.node.cfg.id} }

// closed implements observed: it is never.
func (p *progress) closed() *bool { return new(bool) }

// tellProgress lets the hooks know how a Shutdown with ctx goes on, until the returned function is
// called: with the first Shutdown of the node, since others only wait for the same.
func (n *Node) tellProgress(ctx context.Context) (end func()) {
	if len(n.cfg.hooks.shutdown) == 0 || n.drain.told.Swap(true) {
		return func() {}
	}
	p := &progress{node: n}
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

// watch tells what changes until over is closed.
func (p *progress) watch(over <-chan struct{}, ended chan<- struct{}) {
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

// look tells how many sessions and calls are left, if that has changed, or always.
func (p *progress) look(always bool) {
	now := ShutdownProgress{Left: -1}
	for _, s := range p.node.Sessions() {
		now.Sessions++
		now.Calls += s.table.len()
	}
	if !always && now.Sessions == p.last.Sessions && now.Calls == p.last.Calls {
		return
	}
	p.last = now
	if !p.until.IsZero() {
		now.Left = max(0, time.Until(p.until))
	}
	f := p.node.cfg.hooks.shutdown
	p.node.reports.add(p, report{what: "Shutdown", kind: keepState, n: len(f), tell: func(i int) { f[i](now) }})
}
