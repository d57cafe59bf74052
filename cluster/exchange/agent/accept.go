package agent

import (
	"context"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/tunnel"
)

// accept makes a session of a Wire from another node, and returns when the Wire ends.
func (a *Agent) accept(ctx context.Context, v relayproto.Visitor, p *asterisque.Pipe[relayproto.Answer, struct{}]) (none struct{}, err error) {
	if a.sessions.Add(1) > int64(a.cfg.Sessions) {
		a.sessions.Add(-1)
		return none, a.full()
	}
	defer a.sessions.Add(-1)
	s := asterisque.SessionOf(ctx)
	private := relayproto.IsPrivate(s)
	if err := p.Send(ctx, relayproto.Answer{Private: private}); err != nil {
		return none, err
	}
	conn := tunnel.NewConn(p.Untyped(), s)
	w := newRelayed(conn, a.self(), Addr{Name: v.Name, ID: v.ID, Identity: v.Identity}, private && v.Private, func() {})
	_, err = a.node.Accept(ctx, w)
	if err != nil && err != asterisque.ErrElsewhere { // after ErrElsewhere the relay owns the Wire
		a.node.Logger().Warn("agent: a session has not begun", "peer", w.RemoteAddr(), "error", err)
		w.Close()
	}
	return none, conn.Wait(ctx)
}

func (a *Agent) self() Addr { return Addr{Name: a.cfg.Name, ID: a.cfg.ID, Identity: a.Identity()} }

// full is the error for a session beyond the limit.
func (a *Agent) full() error {
	e := asterisque.ErrOverloaded.Withf("the node has %d sessions through the exchange, and no more are allowed at once: see Config.Sessions of the agent", a.cfg.Sessions)
	e.Ran = codec.Refused
	return e
}
