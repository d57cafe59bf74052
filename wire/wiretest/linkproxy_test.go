package wiretest_test

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// behindLink is a server with connections in the hands of the test, and a proxy through a Link
// before it.
type behindLink struct {
	*testing.T
	link   *wiretest.Link
	proxy  *wiretest.LinkProxy
	server net.Listener
}

func newBehindLink(t *testing.T, cfg wiretest.LinkConfig) behindLink {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	link := wiretest.NewLink(cfg)
	p, err := link.Proxy(server.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
	})
	return behindLink{t, link, p, server}
}

// connect returns both ends of a connection through the proxy.
func (p behindLink) connect() (client, server *net.TCPConn) {
	c, err := net.Dial("tcp", p.proxy.Addr())
	require.NoError(p, err)
	s, err := p.server.Accept()
	require.NoError(p, err)
	p.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// A proxy through a Link forwards in both directions to the end.
func TestLinkProxy_BothWays(t *testing.T) {
	lane := wiretest.Lane{Rate: 64 * mib, Delay: time.Millisecond, Jitter: time.Millisecond}
	p := newBehindLink(t, alike(lane))
	for range 2 {
		client, server := p.connect()
		for _, d := range [][2]*net.TCPConn{{client, server}, {server, client}} {
			sent := data(mib)
			go func() { // ends with the connection
				d[0].Write(sent)
				d[0].CloseWrite()
			}()
			got, err := io.ReadAll(d[1])
			require.NoError(t, err)
			require.Equal(t, sent, got)
		}
	}
	out, in := p.link.Stats()
	require.EqualValues(t, 2*mib, out.Passed)
	require.EqualValues(t, 2*mib, in.Passed)
	require.Zero(t, out.Dropped+in.Dropped)
}

// A proxy through a Link is no faster than the Link.
func TestLinkProxy_Rate(t *testing.T) {
	lane := wiretest.Lane{Rate: mib, Delay: 20 * time.Millisecond}
	p := newBehindLink(t, alike(lane))
	client, server := p.connect()
	begin := time.Now()
	go client.Write(make([]byte, 100*kib))
	_, err := io.ReadFull(server, make([]byte, 100*kib))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), lane.Delay+time.Second/10240*1000)
}

// A full queue blocks the sender through a proxy.
func TestLinkProxy_FullQueue(t *testing.T) {
	p := newBehindLink(t, alike(wiretest.Lane{Rate: 1, Queue: 100_000}))
	client, _ := p.connect()
	written := make(chan int, 1)
	go func() { // ends with the deadline that is set below, or with the connection
		n, err := client.Write(make([]byte, 64*mib))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		written <- n
	}()
	var out wiretest.LaneStats
	full := func() bool { // the last segment need not fit
		out, _ = p.link.Stats()
		return out.Most > 100_000-1448
	}
	require.Eventually(t, full, 2*time.Minute, time.Millisecond)
	require.NoError(t, client.SetWriteDeadline(time.Now()))
	require.Less(t, <-written, 4*mib, "the queue, and what sockets hold")
	require.LessOrEqual(t, out.Most, 100_000)
	require.Zero(t, out.Dropped)
}

// The end of one side of a proxy reaches the other.
func TestLinkProxy_EndOfOneSide(t *testing.T) {
	p := newBehindLink(t, alike(wiretest.Lane{Delay: time.Millisecond}))
	for name, end := range map[string]func(from, to *net.TCPConn){
		"a close": func(from, to *net.TCPConn) {
			from.Close()
			_, err := to.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		},
		"a reset": func(from, to *net.TCPConn) {
			from.SetLinger(0)
			from.Close()
			_, err := to.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		},
	} {
		t.Run(name, func(*testing.T) {
			client, server := p.connect()
			end(client, server)
			client, server = p.connect()
			end(server, client)
		})
	}
}

// Closing a proxy resets the remaining connections.
func TestLinkProxy_Close(t *testing.T) {
	p := newBehindLink(t, alike(wiretest.Lane{Delay: time.Hour}))
	client, server := p.connect()
	_, err := client.Write([]byte("never"))
	require.NoError(t, err)
	require.NoError(t, p.proxy.Close())
	for _, c := range []net.Conn{client, server} {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	_, err = net.Dial("tcp", p.proxy.Addr())
	require.Error(t, err)
}

// A proxy ends the connection of a client without a target.
func TestLinkProxy_NoTarget(t *testing.T) {
	p := newBehindLink(t, wiretest.LinkConfig{})
	p.server.Close()
	client, err := net.Dial("tcp", p.proxy.Addr())
	if err == nil { // otherwise the reset was faster
		defer client.Close()
		_, err = client.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// newPackets returns a server, a client that sends packets to the server through a Link, and the
// Link.
func newPackets(t *testing.T, lane wiretest.Lane) (client, server *net.UDPConn, link *wiretest.Link) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	link = wiretest.NewLink(alike(lane))
	p, err := link.ProxyUDP(server.LocalAddr().String())
	require.NoError(t, err)
	c, err := net.Dial("udp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		server.Close()
		require.NoError(t, p.Close())
	})
	return c.(*net.UDPConn), server, link
}

// Packets cross a Link in both directions.
func TestLinkUDP_BothWays(t *testing.T) {
	client, server, link := newPackets(t, wiretest.Lane{Rate: 16 * mib, Delay: 5 * time.Millisecond, Jitter: time.Millisecond})
	begin, b := time.Now(), make([]byte, 2*kib)
	for n := range 100 {
		_, err := client.Write(data(n + 1))
		require.NoError(t, err)
	}
	for n := range 100 {
		k, from, err := server.ReadFromUDP(b)
		require.NoError(t, err)
		require.Equal(t, data(n+1), b[:k])
		_, err = server.WriteToUDP(b[:k], from)
		require.NoError(t, err)
	}
	for n := range 100 {
		k, err := client.Read(b)
		require.NoError(t, err)
		require.Equal(t, data(n+1), b[:k])
	}
	require.GreaterOrEqual(t, time.Since(begin), 10*time.Millisecond)
	out, in := link.Stats()
	require.EqualValues(t, 5050, out.Passed)
	require.EqualValues(t, 5050, in.Passed)
}

// Packets that find the queue full are lost.
func TestLinkUDP_FullQueue(t *testing.T) {
	client, _, link := newPackets(t, wiretest.Lane{Rate: 1, Queue: 3500})
	for range 10 {
		_, err := client.Write(data(1000))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		out, _ := link.Stats()
		return out == wiretest.LaneStats{Queued: 3000, Most: 3000, Dropped: 7}
	}, 2*time.Minute, time.Millisecond)
}
