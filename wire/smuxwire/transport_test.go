package smuxwire_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// Wires to one address share a connection.
func TestTransport_Shares(t *testing.T) {
	server, client := tlsOptions(t)
	for _, scheme := range []string{"smux", "smux+tls"} {
		l := listen(t, scheme+"://127.0.0.1:0", server)
		a, b := connect(t, l, client)
		c, d := connect(t, l, client)
		pingPong(t, a, b)
		pingPong(t, c, d)
		require.Equal(t, a.LocalAddr(), c.LocalAddr(), "one connection")
		other := wire.Options{TLS: client.TLS.Clone()}
		e, f := connect(t, l, other)
		pingPong(t, e, f)
		require.NotEqual(t, a.LocalAddr(), e.LocalAddr(), "another TLS configuration may be another user")

		require.NoError(t, a.Close())
		pingPong(t, c, d)
		g, h := connect(t, l, client)
		pingPong(t, g, h)
		require.Equal(t, c.LocalAddr(), g.LocalAddr(), "it is there as long as one of its wires")
		require.NoError(t, c.Close())
		require.NoError(t, g.Close())
		i, j := connect(t, l, client)
		pingPong(t, i, j)
		require.NotEqual(t, g.LocalAddr(), i.LocalAddr(), "it is closed with the last of its wires")
	}
}

// A connection ends with its last Wire on both sides.
func TestTransport_LastWire(t *testing.T) {
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer raw.Close()
	a, err := wire.Dial(t.Context(), "smux://"+raw.Addr().String(), wire.Options{})
	require.NoError(t, err)
	c, err := raw.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, a.Close())
	sent, err := io.ReadAll(c)
	require.NoError(t, err, "the connection ends well")
	require.Equal(t, []byte{2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0}, sent, "an Open, a Close")
}

// Wires beyond the limit of a connection get another one.
func TestTransport_SecondConn(t *testing.T) {
	l := listen(t, "smux://127.0.0.1:0", wire.Options{})
	const most = 128
	first, _ := connect(t, l, wire.Options{})
	for range most - 1 {
		w, _ := connect(t, l, wire.Options{})
		require.Equal(t, first.LocalAddr(), w.LocalAddr())
	}
	a, b := connect(t, l, wire.Options{})
	require.NotEqual(t, first.LocalAddr(), a.LocalAddr())
	pingPong(t, a, b)
}

func TestTransport_ManyDials(t *testing.T) {
	l := listen(t, "smux://127.0.0.1:0", wire.Options{})
	go func() { // ends with l
		for {
			w, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with w
				defer w.Close()
				if f, err := w.ReadFrame(100); err == nil {
					w.WriteFrames([][]byte{f})
					w.ReadFrame(0)
				}
			}()
		}
	}()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 10 {
				w, err := wire.Dial(context.Background(), l.URL(), wire.Options{})
				if err == nil {
					err = w.WriteFrames([][]byte{[]byte("hello")})
				}
				if err == nil {
					_, err = w.ReadFrame(5)
				}
				if err != nil {
					t.Error(err)
					return
				}
				w.Close()
			}
		})
	}
	all.Wait()
}

// Dial ends with its context, and does not affect other dials.
func TestDial_Context(t *testing.T) {
	server, client := tlsOptions(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and does no handshake
	require.NoError(t, err)
	defer silent.Close()
	url := "smux+tls://" + silent.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { // ends with ctx
		_, err := wire.Dial(ctx, url, client)
		first <- err
	}()
	c, err := silent.Accept()
	require.NoError(t, err)
	go func() { // shares the first one's attempt, and then makes its own
		w, err := wire.Dial(context.Background(), url, client)
		if err == nil {
			w.Close()
		}
		second <- err
	}()
	impatient, cancelled := context.WithCancel(t.Context())
	cancelled()
	_, err = wire.Dial(impatient, url, client)
	require.ErrorIs(t, err, context.Canceled)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	c.Close()
	d, err := silent.Accept()
	require.NoError(t, err)
	cfg := server.TLS.Clone()
	cfg.NextProtos = []string{"asterisque.smux/1"}
	require.NoError(t, tls.Server(d, cfg).Handshake())
	require.NoError(t, <-second)
	d.Close()
}

func TestTLS_State(t *testing.T) {
	server, client := tlsOptions(t)
	l := listen(t, "smux+tls://127.0.0.1:0", server)
	a, b := connect(t, l, client)
	for _, w := range []wire.Wire{a, b} {
		state := w.(wire.Secure).ConnectionState()
		require.True(t, state.HandshakeComplete)
		require.Equal(t, "asterisque.smux/1", state.NegotiatedProtocol)
	}
	plain := listen(t, "smux://127.0.0.1:0", server)
	c, _ := connect(t, plain, client)
	_, secure := c.(wire.Secure)
	require.False(t, secure)

	refused := make(chan error)
	go func() { // ends with the two failures
		for range 2 {
			w, err := l.Accept()
			if err == nil {
				_, err = w.ReadFrame(0)
				w.Close()
			}
			refused <- err
		}
	}()
	_, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)
	require.ErrorContains(t, <-refused, "bad certificate", "the accepting side learns of it, too")
	_, err = wire.Dial(t.Context(), "tls"+strings.TrimPrefix(l.URL(), "smux+tls"), client)
	require.ErrorContains(t, err, "no application protocol", "a single Wire is no smux")
	require.ErrorContains(t, <-refused, `["asterisque/1"]`)
}

func TestURL_Invalid(t *testing.T) {
	const both, dial, listen = "both", "dial", "listen"
	for _, test := range []struct{ op, url, want string }{
		{both, "smux:127.0.0.1:80", "two slashes are missing behind the scheme; for example smux://127.0.0.1:5330"},
		{both, "smux://127.0.0.1", "port is missing"},
		{both, "smux://127.0.0.1:1/path", "path"},
		{both, "smux://127.0.0.1:1?a=b", "query"},
		{both, "smux://127.0.0.1:1#a", "fragment"},
		{both, "smux://me:secret@127.0.0.1:1", "user"},
		{dial, "smux+tls://:5331", "host is missing; for example smux+tls://127.0.0.1:5330"},
		{listen, "smux+tls://127.0.0.1:0", "certificate"},
	} {
		t.Run(test.op+" "+test.url, func(t *testing.T) {
			if test.op != listen {
				_, err := wire.Dial(t.Context(), test.url, wire.Options{})
				require.ErrorContains(t, err, test.want)
				require.NotContains(t, err.Error(), "secret")
				require.ErrorIs(t, err, wire.ErrURL)
			}
			if test.op != dial {
				_, err := wire.Listen(t.Context(), test.url, wire.Options{})
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// Accepted wires outlive their listener.
func TestListener_CloseKeepsWires(t *testing.T) {
	l := listen(t, "smux://127.0.0.1:0", wire.Options{})
	require.False(t, strings.HasSuffix(l.URL(), ":0"), "the real port")
	a, b := connect(t, l, wire.Options{})
	late, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
	require.NoError(t, err)
	defer late.Close()
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "repeated")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	pingPong(t, a, b)
	_, err = late.ReadFrame(100)
	require.Equal(t, io.EOF, err, "no Accept will return it any more")
	w, err := wire.Dial(t.Context(), l.URL(), wire.Options{}) // over the connection that is there
	if err == nil {
		_, err = w.ReadFrame(100)
		w.Close()
	}
	require.Equal(t, io.EOF, err)
	pingPong(t, a, b)
}

// Sessions share a connection, and call in both directions.
func TestTransport_Sessions(t *testing.T) {
	echo, ask := asterisque.Func[string, string](10, "echo"), asterisque.Func[string, string](11, "ask")
	svc := asterisque.NewService()
	echo.Handle(svc, func(ctx context.Context, s string) (string, error) {
		return ask.Call(ctx, asterisque.SessionOf(ctx), s)
	})
	there := asterisque.NewNode(asterisque.WithService(svc))
	defer there.Close()
	l := listen(t, "smux://127.0.0.1:0", wire.Options{})
	go there.Serve(context.Background(), l) // ends with the node

	mine := asterisque.NewService()
	ask.Handle(mine, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	here := asterisque.NewNode(asterisque.WithService(mine))
	defer here.Close()
	var sessions []*asterisque.Session
	for range 10 {
		sess, err := here.Dial(t.Context(), l.URL())
		require.NoError(t, err)
		sessions = append(sessions, sess)
		require.Equal(t, sessions[0].Peer().LocalAddr, sess.Peer().LocalAddr)
	}
	for i, sess := range sessions {
		if i%2 == 1 {
			require.NoError(t, sess.Close())
		}
		got, err := echo.Call(t.Context(), sess, "star")
		if i%2 == 1 {
			require.True(t, errors.Is(err, asterisque.ErrSessionClosed))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "*star*", got)
	}
}
