package testkit

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/stretchr/testify/require"
)

// Connect returns both ends of a session over TCP loopback. The accepting side offers server. opts
// are for both nodes, which close with the test.
func Connect(t testing.TB, server *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here := asterisque.NewNode(opts...)
	there := asterisque.NewNode(append(opts, asterisque.WithService(server))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return ConnectNodes(t, here, there)
}

// ConnectNodes connects two nodes over TCP loopback.
func ConnectNodes(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	ln, err := wire.Listen(Background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	accepts := make(chan *asterisque.Session, 1)
	go func() {
		defer close(accepts)
		w, err := ln.Accept()
		if err != nil {
			return
		}
		if s, err := there.Accept(Background, w); err == nil {
			accepts <- s
		}
	}()
	dialled, err = here.Dial(Background, ln.URL())
	require.NoError(t, err)
	accepted = <-accepts
	require.NotNil(t, accepted)
	return dialled, accepted
}

// NewNode returns a node that closes with the test.
func NewNode(t testing.TB, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// Listen makes n serve at a URL until the test ends, and returns the actual URL.
func Listen(t testing.TB, n *asterisque.Node, url string, o wire.Options) string {
	t.Helper()
	ln, err := wire.Listen(Background, url, o)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(Background)
	var served sync.WaitGroup
	served.Go(func() { n.Serve(ctx, ln) })
	t.Cleanup(func() { stop(); n.Close(); served.Wait() })
	return ln.URL()
}

// Serve makes n listen on TCP loopback, and returns the URL.
func Serve(t testing.TB, n *asterisque.Node) string {
	t.Helper()
	ln, err := wire.Listen(Background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(Background)
	var served sync.WaitGroup
	served.Go(func() { n.Serve(ctx, ln) })
	t.Cleanup(func() { stop(); served.Wait() })
	return ln.URL()
}

// Lasting returns a connection over TCP with a node that offers svc, and the Cutter of its wires.
func Lasting(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) (*asterisque.Connection, *Cutter) {
	t.Helper()
	here := asterisque.NewNode(opts...)
	there := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	c := &Cutter{URL: Serve(t, there)}
	conn, err := here.Connect(Background, "", asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: c.Dial})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, c
}

// TCPPair returns both ends of a TCP connection.
func TCPPair(t testing.TB) (here, there net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	here, err = net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	there = <-accepted
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

// TLSPipe returns two wires in memory, with TLS, of a client that connects to localhost and of a
// server.
func TLSPipe(client, server *tls.Config) (here, there wire.Wire) {
	a, b := net.Pipe()
	client = client.Clone()
	client.ServerName = "localhost"
	return wire.FromConn(tls.Client(a, client)), wire.FromConn(tls.Server(b, server))
}

// Unbuffered returns two wires over a connection without a buffer: a write waits for its read.
func Unbuffered() (a, b wire.Wire) {
	c, d := net.Pipe()
	return wire.FromConn(c), wire.FromConn(d)
}

// InMemory returns both ends of a session over a Wire in memory, which suits synctest. The
// accepting side offers server. opts are for both nodes, which close with the test.
func InMemory(t testing.TB, server *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(slices.Concat(opts, []asterisque.Option{asterisque.WithService(server)})...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return asterisquetest.ConnectNodes(t, here, there)
}

// TwoNodes returns two connected nodes, which close with the test. The node there offers svc.
func TwoNodes(t *testing.T, svc *asterisque.Service, opts ...asterisque.Option) (here, there *asterisque.Node, dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there = asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted = asterisquetest.ConnectNodes(t, here, there)
	return here, there, dialled, accepted
}

// Congest fills the wire of a session with a peer that does not read, so that later messages wait
// in the queue of the session.
func Congest(t *testing.T, s *asterisque.Session) {
	t.Helper()
	p, err := s.Open(Background, 1, nil)
	require.NoError(t, err)
	for range 4 {
		_, err := p.Post(make([]byte, 60_000))
		require.NoError(t, err)
	}
	synctest.Wait()
}
