package agent

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// between returns the two ends of a Wire over a session, without an exchange: an exchange relays
// whole frames, of at most the size that sessions have.
func between(t *testing.T) (near, far wire.Wire) {
	taken := make(chan wire.Wire, 1)
	svc := asterisque.NewService()
	relayproto.Accept.Handle(svc, func(ctx context.Context, v relayproto.Visitor, p *asterisque.Pipe[relayproto.Answer, struct{}]) (none struct{}, err error) {
		c := tunnel.NewConn(p.Untyped(), asterisque.SessionOf(ctx))
		taken <- newRelayed(c, Addr{Name: "far"}, Addr{Name: v.Name, ID: v.ID, Identity: v.Identity}, v.Private, func() {})
		return none, c.Wait(ctx)
	})
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	a, b := wire.Pipe()
	go there.Accept(context.Background(), b) // ends with the handshake
	s, err := here.Attach(t.Context(), a)
	require.NoError(t, err)
	call, err := relayproto.Accept.Open(context.Background(), s, relayproto.Visitor{Name: "near", Private: true})
	require.NoError(t, err)
	near = newRelayed(tunnel.NewConn(call.Untyped(), s), Addr{Name: "near"}, Addr{Name: "far"}, true, func() {})
	return near, <-taken
}

func TestWire_Conformance(t *testing.T) {
	near, far := between(t)
	require.True(t, wire.IsPrivate(near) && wire.IsPrivate(far))
	require.Equal(t, "near/", far.RemoteAddr().String())
	wiretest.Run(t, between)
	wiretest.Run(t, func(t *testing.T) (near, far wire.Wire) {
		far, near = between(t)
		return near, far
	})
}
