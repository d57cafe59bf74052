package smuxwire_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

var echo = asterisque.Func[string, string](10, "echo")

// victim is a node that serves a Listener for connections with many wires.
type victim struct {
	t       *testing.T
	address string
	client  *tls.Config // nil without TLS
	*attack.Watch
}

func serveVictim(t *testing.T, scheme string, opts ...asterisque.Option) *victim {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	v := &victim{t: t, Watch: attack.NewWatch(t)}
	var o wire.Options
	if scheme == "smux+tls" {
		server, client := tlsOptions(t)
		o, v.client = server, client.TLS
	}
	node := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { node.Close() })
	l, err := wire.Listen(t.Context(), scheme+"://127.0.0.1:0", o)
	require.NoError(t, err)
	go node.Serve(context.Background(), l) // ends with the node
	v.address = strings.TrimPrefix(l.URL(), scheme+"://")
	return v
}

// dial connects from an address of this machine.
func (v *victim) dial(from string) (net.Conn, error) {
	return attack.DialFrom(from, v.address)
}

// honestGoroutines bounds the goroutines of the honest peers, of both ends, which are in this
// process: of smux, of the session and of its worker. Those of peers that have left may not have
// ended yet.
const honestGoroutines = 20 * 2 * (5 + 3 + 1)

// honest makes 20 sessions, four at a time, on connections with a delay of 50 ms, and returns the
// number of successful calls.
func (v *victim) honest(from string) int {
	node := asterisque.NewNode()
	defer node.Close()
	return attack.Honest(v.t, 20, 4, func() error { return v.call(node, from) })
}

func (v *victim) call(node *asterisque.Node, from string) error {
	c, err := v.dial(from)
	if err != nil {
		return err
	}
	v.LongPath()
	if v.client != nil {
		cfg := transport.TLSConfig(v.client, "asterisque.smux/1")
		cfg.ServerName = "127.0.0.1"
		c = tls.Client(c, cfg)
	}
	m, err := smuxwire.Client(c)
	if err != nil {
		return err
	}
	defer m.Close()
	w, err := m.Open(context.Background())
	if err != nil {
		return err
	}
	s, err := node.Attach(context.Background(), w)
	if err != nil {
		return err
	}
	_, err = echo.Call(context.Background(), s, "honest")
	return err
}

// isOver waits until a connection has ended.
func isOver(t *testing.T, c net.Conn) {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(2*time.Minute)))
	_, err := io.Copy(io.Discard, c)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	timeout, ok := err.(net.Error)
	require.False(t, ok && timeout.Timeout(), "it stays")
}

// frameOf returns an smux frame without payload; command 0 opens a stream, 1 closes it, and 3 has
// no effect.
func frameOf(command byte, stream uint32) []byte {
	return []byte{2, command, 0, 0, byte(stream), byte(stream >> 8), byte(stream >> 16), byte(stream >> 24)}
}

func TestAttack_NoStream(t *testing.T) {
	v := serveVictim(t, "smux", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Second}))
	var all []net.Conn
	for range 1000 {
		c, err := v.dial("127.0.0.1")
		require.NoError(t, err)
		defer c.Close()
		c.Write(frameOf(3, 0))
		all = append(all, c)
		v.Look()
	}
	in := v.honest("127.0.0.2")
	for _, c := range all {
		c.Write(frameOf(3, 0)) // the peer lives
	}
	for _, c := range all {
		isOver(t, c)
	}
	attack.Bounded(t, "smux connections without a stream, honest handshakes that failed", 20-in, 0)
	attack.Bounded(t, "the same, goroutines", v.Most(), 1024*6+honestGoroutines+100)
	v.Quiet()
}

// Streams that are opened as fast as possible are bounded.
func TestAttack_FastStreams(t *testing.T) {
	for _, c := range []struct {
		name         string
		close, reads bool
	}{
		{"that stay", false, true},
		{"that stay, and the peer reads nothing", false, false},
		{"that are closed at once", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := serveVictim(t, "smux")
			var attackers sync.WaitGroup
			var refused atomic.Int64
			for range 12 {
				attackers.Go(func() { v.openStreams(c.close, c.reads, &refused) })
			}
			in := v.honest("127.0.0.2")
			attackers.Wait() // until all are cut off
			attack.Bounded(t, "smux streams "+c.name+", honest handshakes that failed", 20-in, 0)
			// As many goroutines as there are places may not have ended yet.
			attack.Bounded(t, "the same, goroutines", v.Most(), 12*(2+6+2*16*4)+honestGoroutines+100)
			// The last refused stream closes the connection.
			attack.Bounded(t, "the same, streams refused for each connection", int(refused.Load())/12, 1024+1)
		})
	}
}

// openStreams opens streams on a connection until the node closes it, and counts the streams that
// were closed.
func (v *victim) openStreams(closes, reads bool, refused *atomic.Int64) {
	c, err := v.dial("127.0.0.1")
	if err != nil {
		return
	}
	defer c.Close()
	if reads {
		go func() { // ends with c
			n, _ := io.Copy(io.Discard, c)
			refused.Add(n / 8)
		}()
	}
	for id := uint32(1); err == nil; {
		var batch []byte
		for range 64 {
			id += 2
			batch = append(batch, frameOf(0, id)...)
			if closes {
				batch = append(batch, frameOf(1, id)...)
			}
		}
		_, err = c.Write(batch)
	}
}

func TestAttack_FormerSession(t *testing.T) {
	v := serveVictim(t, "smux", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 500 * time.Millisecond}))
	node := asterisque.NewNode()
	defer node.Close()
	var all []*smuxwire.Mux
	for range 50 {
		c, err := v.dial("127.0.0.1")
		require.NoError(t, err)
		m, err := smuxwire.Client(c)
		require.NoError(t, err)
		defer m.Close()
		w, err := m.Open(t.Context())
		require.NoError(t, err)
		s, err := node.Attach(t.Context(), w)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		all = append(all, m)
	}
	in := v.honest("127.0.0.2")
	for _, m := range all {
		<-m.Done()
	}
	attack.Bounded(t, "smux connections that had a session, honest handshakes that failed", 20-in, 0)
	v.Quiet()
}

// A connection with a session stays.
func TestPlaces_SessionKeepsOne(t *testing.T) {
	v := serveVictim(t, "smux", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 100 * time.Millisecond}))
	node := asterisque.NewNode()
	defer node.Close()
	c, err := v.dial("127.0.0.1")
	require.NoError(t, err)
	m, err := smuxwire.Client(c)
	require.NoError(t, err)
	defer m.Close()
	w, err := m.Open(t.Context())
	require.NoError(t, err)
	s, err := node.Attach(t.Context(), w)
	require.NoError(t, err)
	idle, err := m.Open(t.Context())
	require.NoError(t, err)
	for err == nil {
		_, err = idle.ReadFrame(1 << 10)
	}
	require.Equal(t, io.EOF, err, "a Wire without a session is closed in time")
	_, err = echo.Call(t.Context(), s, "still here")
	require.NoError(t, err)
}

func TestAttack_SilentTLSDials(t *testing.T) {
	v := serveVictim(t, "smux+tls")
	stop := attack.Silent(func() (net.Conn, error) { return v.dial("127.0.0.1") }, "")
	in := v.honest("127.0.0.1")
	dials := stop()
	attack.Bounded(t, "silent dials to smux+tls, honest handshakes that failed", 20-in, 0)
	attack.Bounded(t, "the same, goroutines", v.Most(), 1024*6+honestGoroutines+100)
	require.Greater(t, dials, 20)
}
