package agent

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

// dial makes the Wire to a node, once there is an exchange.
func (a *Agent) dial(ctx context.Context, name, id string) (wire.Wire, error) {
	s, err := a.await(ctx)
	if err != nil {
		return nil, err
	}
	if a.sessions.Add(1) > int64(a.cfg.Sessions) {
		a.sessions.Add(-1)
		return nil, a.full()
	}
	life, end := context.WithCancel(context.Background()) // it ends with the session
	gone := func() { a.sessions.Add(-1) }
	inTime := context.AfterFunc(ctx, end)
	call, err := outer.Dial.Open(life, s, outer.Target{Name: name, ID: id})
	var answer outer.Answer
	if err == nil {
		answer, err = call.Recv(ctx)
	}
	if !inTime() || err != nil {
		end()
		gone()
		return nil, a.notReached(ctx, name, id, err)
	}
	conn := tunnel.NewConn(call.Untyped(), s)
	w := newRelayed(conn, a.self(), Addr{Name: name, ID: id}, answer.Private && outer.IsPrivate(s), gone)
	w.dialled = true
	return w, nil
}

// notReached returns why there is no Wire to a node.
func (a *Agent) notReached(ctx context.Context, name, id string, err error) error {
	if err == nil {
		err = context.Cause(ctx)
	}
	why, _ := told(err)
	return fmt.Errorf("agent: dialling %s %s through the exchange: %w", name, id, why)
}
