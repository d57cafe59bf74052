package quicwire

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// victim is a node that serves a listener.
type victim struct {
	t       *testing.T
	address string
	client  *tls.Config
	*attack.Watch
}

func serveVictim(t *testing.T, opts ...asterisque.Option) *victim {
	server, client := testtls.Configs(t)
	v := &victim{t: t, Watch: attack.NewWatch(t), client: client}
	node := asterisque.NewNode(append(opts, asterisque.WithService(service()))...)
	t.Cleanup(func() { node.Close() })
	l, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	go node.Serve(context.Background(), l) // ends with the node
	v.address = address(l)
	return v
}

// honest makes 20 sessions, four at a time, on connections that wait for 50 ms before they open a
// session, and returns the number of sessions with a successful call.
func (v *victim) honest() int {
	node := asterisque.NewNode()
	defer node.Close()
	return attack.Honest(v.t, 20, 4, func() error { return v.call(node) })
}

func (v *victim) call(node *asterisque.Node) error {
	c, err := Dial(context.Background(), v.address, v.client)
	if err != nil {
		return err
	}
	defer c.Close()
	v.LongPath()
	s, err := attach(context.Background(), c, node)
	if err != nil {
		return err
	}
	_, err = echo.Call(context.Background(), s, "honest")
	return err
}

// initial returns the first packet of a connection, in the form in which a receiver sees it before
// decryption.
func initial() []byte {
	p := make([]byte, 1200)
	rand.Read(p)
	p[0] = 0xc3                          // Initial, RFC 9000, section 17.2.2
	binary.BigEndian.PutUint32(p[1:], 1) // version
	// The length of the connection ID, which follows.
	p[5] = 8
	p[14] = 0                                       // there is none of its sender
	p[15] = 0                                       // nor a token
	binary.BigEndian.PutUint16(p[16:], 0x4000|1182) // all the rest
	return p
}

// forge sends first packets from addresses that never answer, up to the given number of them.
func (v *victim) forge(ctx context.Context, addresses int) (sent int) {
	to, err := net.ResolveUDPAddr("udp", v.address)
	require.NoError(v.t, err)
	for i := 0; i < addresses && ctx.Err() == nil; i++ {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}, to)
		if err != nil {
			continue
		}
		for range 2 { // two connections of each
			if _, err := c.Write(initial()); err == nil {
				sent++
			}
		}
		c.Close()
		if i%100 == 0 {
			v.Look()
		}
	}
	return sent
}

// catchUp waits until the victim has read the packets sent before. The victim answers a packet of
// an unknown version, unless too many such answers are pending. A machine that cannot read 8,000
// packets a second would lose those of honest peers: that is a property of the network, not of the
// cost of a handshake.
func (v *victim) catchUp(ctx context.Context) {
	c, err := net.Dial("udp", v.address)
	require.NoError(v.t, err)
	defer c.Close()
	unknown := initial()
	binary.BigEndian.PutUint32(unknown[1:], 0x1a2a3a4a) // RFC 9000, section 15
	for answered := false; !answered && ctx.Err() == nil; {
		c.Write(unknown)
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Read(make([]byte, 1500))
		answered = err == nil
	}
}

func TestAttack_ForgedInitials(t *testing.T) {
	v := serveVictim(t)
	require.Greater(t, v.forge(t.Context(), 4000), 4000)
	v.catchUp(t.Context())
	v.Look()
	ctx, stop := context.WithCancel(t.Context())
	var forging sync.WaitGroup
	forging.Go(func() {
		for ctx.Err() == nil {
			v.forge(ctx, 20)
			time.Sleep(5 * time.Millisecond) //nolint:forbidigo // 8,000 a second
			v.catchUp(ctx)
		}
	})
	in := v.honest()
	stop()
	forging.Wait()
	attack.Bounded(t, "QUIC Initials from forged addresses, honest handshakes that failed", 20-in, 0)
	attack.Bounded(t, "the same, goroutines", v.Most(), 2*16*4+100)
}

// Connections without a stream are closed.
func TestAttack_NoStream(t *testing.T) {
	v := serveVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: hangs}))
	var all []*Conn
	for range 100 {
		c, err := Dial(t.Context(), v.address, v.client)
		require.NoError(t, err)
		all = append(all, c)
	}
	attack.Bounded(t, "QUIC connections without a stream, honest handshakes that failed", 20-v.honest(), 0)
	for _, c := range all {
		c.Close()
	}
	v.Quiet()
}

// Connections that never have a session are closed.
func TestAttack_NoSession(t *testing.T) {
	v := serveVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 200 * time.Millisecond}))
	var all []*Conn
	for range 100 {
		// A failed connection is closed already.
		if c, err := Dial(t.Context(), v.address, v.client); err == nil {
			all = append(all, c)
		}
	}
	for _, c := range all {
		<-c.quic.Context().Done()
	}
	v.Quiet()
}

// session begins a session on a connection of its own. It redials while the victim times out, since
// the victim's timeout is short in some tests.
func (v *victim) session(node *asterisque.Node) (*Conn, *asterisque.Session) {
	v.t.Helper()
	for end := time.Now().Add(hangs); ; {
		c, err := Dial(v.t.Context(), v.address, v.client)
		if err == nil {
			var s *asterisque.Session
			if s, err = attach(v.t.Context(), c, node); err == nil {
				return c, s
			}
			c.Close()
		}
		require.True(v.t, time.Now().Before(end), "no session begins: %v", err)
	}
}

func attach(ctx context.Context, c *Conn, node *asterisque.Node) (*asterisque.Session, error) {
	w, err := c.Open()
	if err != nil {
		return nil, err
	}
	return node.Attach(ctx, w)
}

// Connections that once had a session are closed.
func TestAttack_FormerSession(t *testing.T) {
	v := serveVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 500 * time.Millisecond}))
	node := asterisque.NewNode()
	defer node.Close()
	var all []*Conn
	for range 20 {
		c, s := v.session(node)
		require.NoError(t, s.Close())
		all = append(all, c)
	}
	for _, c := range all {
		<-c.quic.Context().Done()
	}
	v.Quiet()
}

// Streams without data are bounded.
func TestAttack_EmptyStreams(t *testing.T) {
	v := serveVictim(t)
	c, err := Dial(t.Context(), v.address, v.client)
	require.NoError(t, err)
	opened := 0
	for c.quic.Context().Err() == nil {
		str, err := c.quic.OpenStreamSync(t.Context())
		if err != nil {
			break
		}
		opened++
		str.Write([]byte{0})
		str.CancelWrite(codeClosed)
		str.CancelRead(codeClosed)
	}
	<-c.quic.Context().Done()
	require.ErrorContains(t, context.Cause(c.quic.Context()), "carried no session")
	attack.Bounded(t, "QUIC streams of which nothing comes, until the peer is cut off", opened, 1024+2*sessions)
	attack.Bounded(t, "the same, honest handshakes that failed", 20-v.honest(), 0)
}

// A session keeps the place of its connection.
func TestPlaces_SessionKeepsOne(t *testing.T) {
	v := serveVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 100 * time.Millisecond}))
	node := asterisque.NewNode()
	defer node.Close()
	c, s := v.session(node)
	defer c.Close()
	idle, err := c.Open()
	require.NoError(t, err)
	require.NoError(t, idle.(wire.BatchWriter).WriteBatch([]byte{0, 0}))
	for err == nil {
		_, err = idle.ReadFrame(1 << 10)
	}
	_, err = echo.Call(t.Context(), s, "still here")
	require.NoError(t, err)
}

// Handshakes that stop at the first packet are bounded, even for one address.
func TestHandshakes_PerAddress(t *testing.T) {
	var h pendingHandshakes
	at := func(i int) net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: 1} }
	for i := range 2 * mostUnreadOf {
		require.Equal(t, i < mostUnreadOf, h.enter(at(0)))
		require.Equal(t, i+1 >= fewHandshakes, h.many())
	}
	require.True(t, h.enter(at(1)), "other addresses get in")
	h.leave(at(1), true)
	h.read(at(0))
	require.True(t, h.enter(at(0)), "one has come further")
	for i := mostUnreadOf; i < 2*mostUnread; i++ {
		require.Equal(t, i < mostUnread, h.enter(at(i/mostUnreadOf)))
	}
	h.leave(at(0), false) // the one that has come further
	for i := range mostUnread {
		h.leave(at(i/mostUnreadOf), true)
	}
	require.Zero(t, h.open)
	require.Zero(t, h.unread)
	require.Empty(t, h.unreadOf)
}

// TestHandshakes_EndUnreported uses connections that end before quic-go reports them.
func TestHandshakes_EndUnreported(t *testing.T) {
	var h pendingHandshakes
	for range 2 {
		a := &handshakeAttempt{from: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, handshakes: &h, open: true}
		require.True(t, h.enter(a.from))
		a.complete()
		a.reached(nil)
	}
	require.Zero(t, h.open)
	require.Zero(t, h.unread)
	require.Empty(t, h.unreadOf)
}
