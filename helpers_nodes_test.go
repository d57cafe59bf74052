package asterisque_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/stretchr/testify/require"
)

// connect returns both ends of a session over TCP loopback. The accepting side offers server; opts
// are for both nodes, which close with the test.
func connect(t testing.TB, server *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here := asterisque.NewNode(opts...)
	there := asterisque.NewNode(append(opts, asterisque.WithService(server))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return connectNodes(t, here, there)
}

// connectNodes connects two nodes over TCP loopback.
func connectNodes(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	accepts := make(chan *asterisque.Session, 1)
	go func() {
		defer close(accepts)
		w, err := ln.Accept()
		if err != nil {
			return
		}
		if s, err := there.Accept(background, w); err == nil {
			accepts <- s
		}
	}()
	dialled, err = here.Dial(background, ln.URL())
	require.NoError(t, err)
	accepted = <-accepts
	require.NotNil(t, accepted)
	return dialled, accepted
}

func newNode(t testing.TB, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// listen lets n serve at a URL until the test ends, and returns where.
func listen(t testing.TB, n *asterisque.Node, url string, o wire.Options) string {
	t.Helper()
	ln, err := wire.Listen(background, url, o)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(background)
	var served sync.WaitGroup
	served.Go(func() { n.Serve(ctx, ln) })
	t.Cleanup(func() { stop(); n.Close(); served.Wait() })
	return ln.URL()
}

// serve lets n listen on TCP loopback, and returns where.
func serve(t testing.TB, n *asterisque.Node) string {
	t.Helper()
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(background)
	var served sync.WaitGroup
	served.Go(func() { n.Serve(ctx, ln) })
	t.Cleanup(func() { stop(); served.Wait() })
	return ln.URL()
}

// lasting returns a connection with a node that offers svc, over TCP, and what cuts it.
func lasting(t testing.TB, svc *asterisque.Service, opts ...asterisque.Option) (*asterisque.Connection, *cutter) {
	t.Helper()
	here := asterisque.NewNode(opts...)
	there := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	c := &cutter{url: serve(t, there)}
	conn, err := here.Connect(background, "", asterisque.Reconnection{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: c.dial})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, c
}

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (here, there net.Conn) {
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

// tlsPipe returns two wires in memory, with TLS, of a client that connects to localhost and of a
// server.
func tlsPipe(client, server *tls.Config) (here, there wire.Wire) {
	a, b := net.Pipe()
	client = client.Clone()
	client.ServerName = "localhost"
	return wire.FromConn(tls.Client(a, client)), wire.FromConn(tls.Server(b, server))
}

// unbuffered returns two wires over a connection that holds nothing: a write waits for its read.
func unbuffered() (a, b wire.Wire) {
	c, d := net.Pipe()
	return wire.FromConn(c), wire.FromConn(d)
}

// inMemory returns both ends of a session over a Wire in memory, which suits synctest. The
// accepting side offers server; opts are for both nodes, which close with the test.
func inMemory(t testing.TB, server *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(slices.Concat(opts, []asterisque.Option{asterisque.WithService(server)})...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return asterisquetest.ConnectNodes(t, here, there)
}
