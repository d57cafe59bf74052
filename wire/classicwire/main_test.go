package classicwire_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var background = context.Background()

// newNode returns a node for classic sessions, which closes with the test.
func newNode(t testing.TB, form classic.Codec, svc *asterisque.Service, opts ...asterisque.Option) *asterisque.Node {
	opts = append([]asterisque.Option{
		asterisque.WithCodecs(form), asterisque.WithService(svc),
	}, opts...)
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// connect returns both ends of a classic session of two new nodes over TCP. The nodes offer server
// and client; opts apply to both.
func connect(t testing.TB, form classic.Codec, server, client *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	return connectNodes(t, "classic", newNode(t, form, client, opts...), newNode(t, form, server, opts...))
}

// connectNodes connects two nodes over TCP with the protocol of a scheme.
func connectNodes(t testing.TB, scheme string, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	ln, err := wire.Listen(background, scheme+"://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	near, err := wire.Dial(background, ln.URL(), wire.Options{})
	require.NoError(t, err)
	far, err := ln.Accept()
	require.NoError(t, err)
	return asterisquetest.ConnectOver(t, here, there, near, far)
}

// connectUnbuffered is connect over an unbuffered connection: a write waits for its read.
func connectUnbuffered(t testing.TB, form classic.Codec, server, client *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := net.Pipe()
	return asterisquetest.ConnectOver(t, newNode(t, form, client, opts...), newNode(t, form, server, opts...), classicwire.Client(a), classicwire.Server(b))
}
