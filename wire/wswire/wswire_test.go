//go:build !js

package wswire_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

var (
	echo = asterisque.Func[string, string](10, "echo")
	ask  = asterisque.Func[string, string](11, "ask")
)

// A session over a route calls in both directions.
func TestHandler_Session(t *testing.T) {
	type key struct{}
	svc := asterisque.NewService()
	echo.Handle(svc, func(ctx context.Context, s string) (string, error) {
		return ask.Call(ctx, asterisque.SessionOf(ctx), s)
	})
	var token atomic.Value
	there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithAccess(asterisque.Access{Accept: func(ctx context.Context, _ asterisque.Peer) (*asterisque.Grant, error) {
		token.Store(ctx.Value(key{}))
		return &asterisque.Grant{Service: svc}, nil
	}}))
	defer there.Close()
	route := wswire.Handler(there)
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// middleware
		route.ServeHTTP(wrapped{w}, r.WithContext(context.WithValue(r.Context(), key{}, r.Header.Get("Authorization"))))
	}))

	mine := asterisque.NewService()
	ask.Handle(mine, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	here := asterisque.NewNode(asterisque.WithService(mine))
	defer here.Close()
	w, err := wswire.Dial(t.Context(), url, wswire.WithHeader(http.Header{"Authorization": {"Bearer 1234"}}))
	require.NoError(t, err)
	sess, err := here.Attach(t.Context(), w)
	require.NoError(t, err)
	got, err := echo.Call(t.Context(), sess, "star")
	require.NoError(t, err)
	require.Equal(t, "*star*", got)
	require.Equal(t, "Bearer 1234", token.Load(), "what middleware put into the context is there when the peer is let in")
	require.NoError(t, sess.Close())
}

// wrapped is a ResponseWriter as middleware wraps it.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A Wire outlives its request, and the time limits of the server.
func TestHandler_WireOutlives(t *testing.T) {
	wires := make(acceptor, 1)
	limits := make(chan *deadlines, 1)
	s := httptest.NewUnstartedServer(wswire.Handler(wires))
	s.Listener = &watched{s.Listener, limits}
	s.Config.ReadTimeout, s.Config.WriteTimeout, s.Config.IdleTimeout = time.Hour, time.Hour, time.Hour
	s.Start()
	ctx, cancel := context.WithCancel(t.Context())
	a, err := wire.Dial(ctx, "ws"+strings.TrimPrefix(s.URL, "http"), wire.Options{})
	require.NoError(t, err)
	defer a.Close()
	b := <-wires
	defer b.Close()
	cancel()
	s.Close() // waits for the request
	d := <-limits
	require.True(t, d.set.Load(), "the server had limits")
	require.Zero(t, d.read.Load(), "and none is left")
	require.Zero(t, d.write.Load())
	for _, ends := range [][2]wire.Wire{{a, b}, {b, a}} {
		require.NoError(t, ends[0].WriteFrames([][]byte{[]byte("still here")}))
		frame, err := ends[1].ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, "still here", string(frame))
	}
}

// watched reports the deadlines of its first connection.
type watched struct {
	net.Listener
	conns chan *deadlines
}

func (w *watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d := &deadlines{Conn: c}
	w.conns <- d
	return d, nil
}

// deadlines records the deadlines of a connection, 0 for none.
type deadlines struct {
	net.Conn
	set         atomic.Bool
	read, write atomic.Int64
}

func (d *deadlines) SetDeadline(t time.Time) error {
	d.SetReadDeadline(t)
	return d.SetWriteDeadline(t)
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.keep(&d.read, t)
	return d.Conn.SetReadDeadline(t)
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.keep(&d.write, t)
	return d.Conn.SetWriteDeadline(t)
}

func (d *deadlines) keep(in *atomic.Int64, t time.Time) {
	in.Store(0)
	if !t.IsZero() && time.Until(t) > time.Minute {
		d.set.Store(true)
		in.Store(1)
	}
}

func TestTLS_State(t *testing.T) {
	server, client := tlsOptions(t)
	l := listen(t, "wss://127.0.0.1:0/rpc", server)
	a, b := connect(t, l, client)
	for _, w := range []wire.Wire{a, b} {
		state := w.(wire.Secure).ConnectionState()
		require.True(t, state.HandshakeComplete)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
		require.Equal(t, "http/1.1", state.NegotiatedProtocol)
	}
	require.Len(t, a.(wire.Secure).ConnectionState().PeerCertificates, 1)
	require.Empty(t, server.TLS.NextProtos, "the given config is not changed")
	require.Empty(t, client.TLS.NextProtos)

	_, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)
	_, err = wire.Dial(t.Context(), "ws"+strings.TrimPrefix(l.URL(), "wss"), wire.Options{})
	require.ErrorContains(t, err, "HTTPS", "ws at a server that wants wss")
	plain := listen(t, "ws://127.0.0.1:0/rpc", server)
	plain.(transport.Guarded).Guard(nil)
	_, err = wire.Dial(t.Context(), "wss"+strings.TrimPrefix(plain.URL(), "ws"), client)
	require.ErrorContains(t, err, "server gave HTTP response to HTTPS client")
	c, _ := connect(t, plain, wire.Options{})
	_, secure := c.(wire.Secure)
	require.False(t, secure)
}

func TestURL_Invalid(t *testing.T) {
	const both, dial, listen = "both", "dial", "listen"
	for _, test := range []struct{ op, url, want string }{
		{both, "ws:127.0.0.1:80", "slashes"},
		{both, "ws://127.0.0.1/rpc#a", "fragment"},
		{dial, "ws://127.0.0.1:0/rpc", "no port 0"},
		{dial, "wss://host:70000/rpc?a", "no port 70000"},
		{dial, "ws:///rpc", "host is missing; for example ws://127.0.0.1:8080/rpc"},
		{listen, "ws://127.0.0.1/rpc", "port is missing; for example ws://127.0.0.1:8080/rpc"},
		{listen, "ws://me:secret@127.0.0.1:0/rpc", "user"},
		{listen, "ws://127.0.0.1:0/rpc?a=b", "query"},
		{listen, "wss://127.0.0.1:0/rpc", "certificate"},
	} {
		t.Run(test.op+" "+test.url, func(t *testing.T) {
			if strings.HasSuffix(test.url, "#a") {
				test.url = strings.Replace(test.url, "/rpc", ":0/rpc", 1)
			}
			if test.op != listen {
				_, err := wire.Dial(t.Context(), test.url, wire.Options{})
				require.ErrorContains(t, err, test.want)
				require.ErrorIs(t, err, wire.ErrURL)
			}
			if test.op != dial {
				_, err := wire.Listen(t.Context(), test.url, wire.Options{})
				require.ErrorContains(t, err, test.want)
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
	_, err := wswire.Dial(t.Context(), "http://127.0.0.1/")
	require.ErrorContains(t, err, `the scheme is "http"; use ws or wss`)
	_, err = wswire.Dial(t.Context(), "ws://%zz")
	require.ErrorContains(t, err, "for example, wss://example.org/rpc")
}

// A listener is reached only at its URL.
func TestListener_OnlyAtURL(t *testing.T) {
	for _, path := range []string{"", "/", "/rpc"} {
		l := listen(t, "ws://127.0.0.1:0"+path, wire.Options{})
		require.True(t, strings.HasSuffix(l.URL(), path), l.URL())
		a, b := connect(t, l, wire.Options{})
		_, err := wire.Dial(t.Context(), strings.TrimSuffix(l.URL(), path)+"/elsewhere", wire.Options{})
		require.ErrorContains(t, err, `"404 Not Found": nothing is here; the WebSocket of asterisque is at /`)

		require.NoError(t, l.Close())
		require.NoError(t, l.Close(), "repeated")
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, a.WriteFrames([][]byte{[]byte("hello")}), "accepted wires continue")
		frame, err := b.ReadFrame(5)
		require.NoError(t, err)
		require.Equal(t, "hello", string(frame))
	}
}

// One Wire more than can wait is refused.
func TestListener_FullQueue(t *testing.T) {
	l := listen(t, "ws://127.0.0.1:0/rpc", wire.Options{})
	l.(transport.Guarded).Guard(nil)
	ended := make(chan error)
	const wires = 128 + 1
	for range wires {
		w, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
		require.NoError(t, err)
		go func() { // ends with w, which ends with the listener
			defer w.Close()
			_, err := w.ReadFrame(100)
			ended <- err
		}()
	}
	err := <-ended // all other connections wait
	require.ErrorContains(t, err, "code 1013")
	require.ErrorContains(t, err, "128 connections wait to be accepted already")
	require.NoError(t, l.Close())
	for range wires - 1 {
		require.Equal(t, io.EOF, <-ended)
	}
}

func TestDial_Context(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and does not answer
	require.NoError(t, err)
	defer silent.Close()
	for _, scheme := range []string{"ws", "wss"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { // ends with ctx
			_, err := wire.Dial(ctx, scheme+"://"+silent.Addr().String(), wire.Options{})
			done <- err
		}()
		c, err := silent.Accept()
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		c.Close()
	}
}

// A Ping is answered even while the peer does not read.
func TestPing_PeerNotReading(t *testing.T) {
	url, wires := serve(t)
	c := pageWire(t, url)
	c.SetReadLimit(-1)
	w := <-wires
	defer w.Close()
	const frames = 64 // more bytes than the systems of both sides take
	go func() {       // ends with w
		for {
			if _, err := w.ReadFrame(100); err != nil {
				return
			}
		}
	}()
	written := make(chan error, 1)
	go func() { // ends when all is read
		var err error
		for i := 0; i < frames && err == nil; i++ {
			err = w.WriteFrames([][]byte{make([]byte, 1<<20)})
		}
		written <- err
	}()
	answered := make(chan error, 1)
	go func() { answered <- c.Ping(t.Context()) }() // ends with the answer, which is behind frames
	for range frames {
		_, b, err := c.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, b, 1<<20)
	}
	require.NoError(t, <-written)
	go c.Read(t.Context()) // ends with c; the answer may be the last of all
	require.NoError(t, <-answered)
}

// A message in fragments is one frame.
func TestMessage_Fragments(t *testing.T) {
	url, wires := serve(t)
	c := pageWire(t, url)
	w := <-wires
	defer w.Close()
	parts, err := c.Writer(t.Context(), websocket.MessageBinary)
	require.NoError(t, err)
	for _, p := range []string{"hello, ", "", "stars"} {
		_, err := parts.Write([]byte(p))
		require.NoError(t, err)
	}
	require.NoError(t, parts.Close())
	frame, err := w.ReadFrame(12)
	require.NoError(t, err)
	require.Equal(t, "hello, stars", string(frame))
}

// Progress is visible while a large frame is in flight.
func TestProgress_LargeFrame(t *testing.T) {
	l := listen(t, "ws://127.0.0.1:0/rpc", wire.Options{})
	a, b := connect(t, l, wire.Options{})
	for _, ends := range [][2]wire.Wire{{a, b}, {b, a}} {
		from, to := ends[0].(wire.Meter), ends[1].(wire.Meter)
		_, sent := from.Progress()
		received, _ := to.Progress()
		written := make(chan error, 1)
		// The goroutine ends when the frames have been read.
		go func() { written <- ends[0].WriteFrames([][]byte{make([]byte, 1<<20)}) }()
		_, err := ends[1].ReadFrame(1 << 20)
		require.NoError(t, err)
		require.NoError(t, <-written)
		_, sentNow := from.Progress()
		receivedNow, _ := to.Progress()
		require.Greater(t, sentNow-sent, uint64(1<<20))
		require.Equal(t, sentNow-sent, receivedNow-received)
	}
}
