package tunnel_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

// hangs is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const hangs = 2 * time.Minute

// number is the function at which the tests listen.
const number = 80

// silent is a logger for tests that provoke log lines.
var silent = asterisque.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// sessions returns both ends of a session over two connected wires. The accepting side offers svc;
// opts apply to both nodes, which close with the test.
func sessions(t testing.TB, a, b wire.Wire, svc *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return joinedBy(t, a, b, here, there)
}

// joined returns both ends of a new session between two nodes, over wires in memory.
func joined(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := wire.Pipe()
	return joinedBy(t, a, b, here, there)
}

func joinedBy(t testing.TB, a, b wire.Wire, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	accepts := make(chan *asterisque.Session)
	go func() { // ends with the handshake
		s, err := there.Accept(background, b)
		if err != nil {
			t.Error(err)
		}
		accepts <- s
	}()
	dialled, err := here.Attach(background, a)
	require.NoError(t, err)
	return dialled, <-accepts
}

// inMemory is sessions over wires in memory, which suit synctest.
func inMemory(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := wire.Pipe()
	return sessions(t, a, b, svc, opts...)
}

// overTCP is sessions over TCP loopback.
func overTCP(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	a, err := wire.Dial(background, ln.URL(), wire.Options{})
	require.NoError(t, err)
	b, err := ln.Accept()
	require.NoError(t, err)
	return sessions(t, a, b, svc, opts...)
}

// connected returns both ends of a connection over a session in memory, which end with the test.
func connected(t testing.TB, opts ...asterisque.Option) (dialled, accepted *tunnel.Conn) {
	t.Helper()
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "test")
	s, _ := inMemory(t, svc, opts...)
	return pair(t, s, ln)
}

// pair dials a connection on s, and accepts it from ln.
func pair(t testing.TB, s *asterisque.Session, ln net.Listener) (dialled, accepted *tunnel.Conn) {
	t.Helper()
	a, err := tunnel.Dial(background, s, number)
	require.NoError(t, err)
	b, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*tunnel.Conn), b.(*tunnel.Conn)
}

// dialInMemory returns a function that dials in-memory wires, which there accepts.
func dialInMemory(there *asterisque.Node) func(context.Context) (wire.Wire, error) {
	return cutInMemory(there, nil)
}

// cutInMemory is dialInMemory that also sends a function that cuts each wire to cuts, if cuts has
// room.
func cutInMemory(there *asterisque.Node, cuts chan<- func() error) func(context.Context) (wire.Wire, error) {
	return func(context.Context) (wire.Wire, error) {
		a, b := wire.Pipe()
		go there.Accept(background, b) // ends with the handshake
		select {
		case cuts <- a.Close:
		default:
		}
		return a, nil
	}
}
