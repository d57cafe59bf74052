package classicwire_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

// newNode returns a node for classic sessions, which closes with the test.
func newNode(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) *asterisque.Node {
	opts = append([]asterisque.Option{
		asterisque.WithCodecs(classic.Values), asterisque.WithService(svc),
	}, opts...)
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// connect returns both ends of a classic session of two new nodes over TCP. server and client are
// what they offer; opts are for both.
func connect(t testing.TB, server, client *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there := newNode(t, client, opts...), newNode(t, server, opts...)
	ln, err := wire.Listen(background, "classic://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	return join(t, here, there, func() (wire.Wire, error) { return wire.Dial(background, ln.URL(), wire.Options{}) }, ln.Accept)
}

// connectUnbuffered is connect over a connection that holds nothing: a write waits for its read.
func connectUnbuffered(t testing.TB, server, client *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := net.Pipe()
	return join(t, newNode(t, client, opts...), newNode(t, server, opts...),
		func() (wire.Wire, error) { return classicwire.Client(a), nil }, func() (wire.Wire, error) { return classicwire.Server(b), nil })
}

// join makes a session of the two ends of a connection.
func join(t testing.TB, here, there *asterisque.Node, dial, accept func() (wire.Wire, error)) (dialled, accepted *asterisque.Session) {
	t.Helper()
	accepts := make(chan *asterisque.Session, 1)
	go func() {
		defer close(accepts)
		w, err := accept()
		if err != nil {
			t.Error(err)
			return
		}
		s, err := there.Accept(background, w)
		if err != nil {
			t.Error(err)
			return
		}
		accepts <- s
	}()
	w, err := dial()
	require.NoError(t, err)
	dialled, err = here.Attach(background, w)
	require.NoError(t, err)
	accepted = <-accepts
	require.NotNil(t, accepted)
	return dialled, accepted
}
