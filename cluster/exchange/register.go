package exchange

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

// register registers a node for as long as the call lasts.
func (x *Exchange) register(ctx context.Context, reg relayproto.Registration, p *asterisque.Pipe[relayproto.Welcome, relayproto.State]) (none struct{}, err error) {
	s := asterisque.SessionOf(ctx)
	m, err := x.proved(s.Peer(), reg.Member)
	if err != nil {
		return none, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r := x.newRegistrant(s, m, end)
	defer close(r.gone)
	if err := x.nodes.enter(r); err != nil {
		return none, err
	}
	defer x.nodes.leave(r)
	hide, err := x.show(ctx, r)
	if err != nil {
		return none, err
	}
	defer hide()
	if err := p.Send(ctx, relayproto.Welcome{Exchange: x.cfg.ID, Identity: m.Identity}); err != nil {
		return none, err
	}
	return none, x.attend(ctx, r, p)
}

// proved returns a node that registers, with the identity that it has proved.
func (x *Exchange) proved(p asterisque.Peer, m relayproto.Member) (_ relayproto.Member, err error) {
	if err := m.Check(); err != nil {
		return m, err
	}
	if m.Identity, err = prove(p, &m); err != nil {
		x.cfg.Logger.Warn("exchange: a node is refused", "node", m.Name+" "+m.ID, "peer", p, "error", err)
	}
	m.Since = time.Now().UTC().Round(time.Millisecond)
	m.Durable = false // only nodes of the cluster have it
	return m, err
}

func (x *Exchange) newRegistrant(s *asterisque.Session, m relayproto.Member, end context.CancelCauseFunc) *registeredNode {
	r := &registeredNode{session: s, end: end, member: m, draining: make(chan struct{}), gone: make(chan struct{})}
	if m.State == relayproto.Draining {
		close(r.draining)
	}
	r.relays.most, r.watched.most = int64(x.cfg.PerNode), names
	return r
}

// attend receives the states of a node until its registration ends, and returns the reason.
func (x *Exchange) attend(ctx context.Context, r *registeredNode, p *asterisque.Pipe[relayproto.Welcome, relayproto.State]) error {
	var reading sync.WaitGroup
	defer reading.Wait()
	defer r.end(nil)    // for the goroutine
	reading.Go(func() { // ends with ctx
		for {
			s, err := p.Recv(ctx)
			if err == nil && (s == relayproto.Present || s == relayproto.Draining) {
				x.nodes.setState(r, s)
				continue
			}
			r.end(err)
			return
		}
	})
	select {
	case <-asterisque.Draining(ctx):
		return relayproto.ErrGoes
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// prove returns the identity that a node has proved, or an ErrUnproved if it claims another one.
// Without a claim the identity is the granted Subject, or the node's name, if its certificate is
// valid for it, or else empty.
func prove(p asterisque.Peer, m *relayproto.Member) (string, error) {
	if len(p.Subject) > mostIdentity || !isText(p.Subject) {
		return "", relayproto.ErrUnproved.Withf("the granted Subject is no identity, which has up to %d bytes, all printable: %.80q", mostIdentity, p.Subject)
	}
	if p.Subject != "" {
		if m.Identity != "" && m.Identity != p.Subject {
			return "", relayproto.ErrUnproved.Withf("the node claims to be %q, and has proved to be %q", m.Identity, p.Subject)
		}
		return p.Subject, nil
	}
	claim := defaulted(m.Identity, m.Name)
	if c := p.Certificate(); claim != "" && c != nil && c.VerifyHostname(claim) == nil {
		return claim, nil
	}
	if m.Identity != "" {
		return "", relayproto.ErrUnproved.Withf("the node claims to be %q: its certificate does not prove that, and nothing else was granted", m.Identity)
	}
	return "", nil
}
