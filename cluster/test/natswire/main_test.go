package natswire_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func TestMain(m *testing.M) { natstest.Main(m) }

var background = context.Background()

// hangs is how long a test waits for an event before it fails: no machine is so slow.
const hangs = 2 * time.Minute

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
	t.Cleanup(func() { stop(s) })
	s.Start()
	require.True(t, s.ReadyForConnections(hangs), "the NATS server starts")
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// restart stops a server, and returns an option for the next one to listen at the same port.
func restart(s *server.Server) func(o *server.Options) {
	port := s.Addr().(*net.TCPAddr).Port
	stop(s)
	return func(o *server.Options) { o.Port = port }
}

// secretURL returns the URL of a server for wires with TLS between their ends.
func secretURL(s *server.Server) string {
	return strings.Replace(s.ClientURL(), "nats:", "nats+tls:", 1)
}

// connectTo returns a connection to a server with the options of a user, until t ends.
func connectTo(t testing.TB, s *server.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL(), append(opts, nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// listenAt listens at a URL until t ends.
func listenAt(t testing.TB, url string, o wire.Options) wire.Listener {
	t.Helper()
	ln, err := wire.Listen(t.Context(), url, o)
	require.NoError(t, err)
	return listening(t, ln)
}

// listening closes a listener when t ends, and makes it accept wires before the first Accept.
func listening(t testing.TB, ln wire.Listener) wire.Listener {
	t.Helper()
	t.Cleanup(func() { ln.Close() })
	ln.(transport.Guarded).Guard(nil)
	return ln
}

// pairAt dials ln and returns both ends, which are closed when t ends.
func pairAt(t testing.TB, ln wire.Listener, o wire.Options) (here, there wire.Wire) {
	t.Helper()
	type result struct {
		w   wire.Wire
		err error
	}
	// With TLS, Dial waits for the accepting end.
	dialled := make(chan result, 1)
	go func() { // ends with the dial
		w, err := wire.Dial(t.Context(), ln.URL(), o)
		if err != nil {
			ln.Close() // or Accept would wait forever
		}
		dialled <- result{w, err}
	}()
	there, err := ln.Accept()
	if err != nil {
		require.NoError(t, (<-dialled).err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { there.Close() })
	_, secure := there.(wire.Secure)
	if secure { // its first write does the TLS handshake
		require.NoError(t, there.WriteFrames([][]byte{[]byte("secure")}))
	}
	r := <-dialled
	require.NoError(t, r.err)
	t.Cleanup(func() { r.w.Close() })
	if secure {
		_, err := r.w.ReadFrame(most)
		require.NoError(t, err)
	}
	return r.w, there
}

// pairOver returns both ends of a Wire between two connections, which are closed when t ends.
func pairOver(t testing.TB, dialling, listens *nats.Conn) (here, there wire.Wire) {
	t.Helper()
	ln, err := natswire.Listen(t.Context(), listens, "wires", nil)
	require.NoError(t, err)
	listening(t, ln)
	here, err = natswire.Dial(t.Context(), dialling, "wires", nil)
	require.NoError(t, err)
	t.Cleanup(func() { here.Close() })
	there, err = ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { there.Close() })
	return here, there
}

// most is the maximum size of the frames that the tests read.
const most = 4 << 20

// readError reads a Wire until the first error and returns the error.
func readError(w wire.Wire) error {
	for {
		if _, err := w.ReadFrame(most); err != nil {
			return err
		}
	}
}

// carries requires that a frame reaches the other end of a Wire.
func carries(t testing.TB, from, to wire.Wire, text string) {
	t.Helper()
	require.NoError(t, from.WriteFrames([][]byte{[]byte(text)}))
	frame, err := to.ReadFrame(most)
	require.NoError(t, err)
	require.Equal(t, text, string(frame))
}
