package agent

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

// dial makes the Wire to a node, once an exchange is connected.
func (a *Agent) dial(ctx context.Context, name, id string) (wire.Wire, error) {
	s, err := a.await(ctx)
	if err != nil {
		return nil, err
	}
	if a.sessions.Add(1) > int64(a.cfg.Sessions) {
		a.sessions.Add(-1)
		return nil, a.full()
	}
	gone := func() { a.sessions.Add(-1) }
	call, answer, err := dialThrough(ctx, s, relayproto.Target{Name: name, ID: id})
	if err != nil {
		gone()
		return nil, notReached(name, id, err)
	}
	conn := tunnel.NewConn(call.Untyped(), s)
	w := newRelayed(conn, a.self(), Addr{Name: name, ID: id}, answer.Private && relayproto.IsPrivate(s), gone)
	w.dialled = true
	return w, nil
}

// dialling is the call by which an exchange relays a Wire.
type dialling = asterisque.StreamCall[struct{}, relayproto.Answer, struct{}]

// dialThrough asks an exchange for a Wire to a node. The call then lasts as long as the session.
func dialThrough(ctx context.Context, s *asterisque.Session, t relayproto.Target) (call *dialling, answer relayproto.Answer, err error) {
	life, end := context.WithCancel(context.Background())
	inTime := context.AfterFunc(ctx, end)
	call, err = relayproto.Dial.Open(life, s, t)
	if err == nil {
		answer, err = call.Recv(ctx)
	}
	if !inTime() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
	}
	return call, answer, err
}

// notReached returns the error of a failed dial.
func notReached(name, id string, err error) error {
	why, _ := told(err)
	return fmt.Errorf("agent: dialling %s %s through the exchange: %w", name, id, why)
}
