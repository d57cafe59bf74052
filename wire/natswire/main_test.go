package natswire

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/wire"
)

// startTime bounds how long a NATS server may take to start.
const startTime = 10 * time.Second

func TestMain(m *testing.M) { leak.Main(m) }

// broker starts a NATS server on loopback, which runs until t ends. Each of the functions may
// change its options.
func broker(t testing.TB, change ...func(o *server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true}
	for _, f := range change {
		f(o)
	}
	s, err := server.NewServer(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	s.Start()
	require.True(t, s.ReadyForConnections(startTime), "the NATS server starts")
	return s
}

// listenAt listens at a URL until t ends.
func listenAt(t testing.TB, url string, o wire.Options) wire.Listener {
	t.Helper()
	ln, err := wire.Listen(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	ln.(*listener).Guard(nil) // before there is an Accept
	return ln
}

// connect dials ln and returns both ends, which are closed when t ends.
func pairAt(t testing.TB, ln wire.Listener, o wire.Options) (here, there wire.Wire) {
	t.Helper()
	here, err := wire.Dial(t.Context(), ln.URL(), o)
	require.NoError(t, err)
	t.Cleanup(func() { here.Close() })
	there, err = ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { there.Close() })
	return here, there
}
