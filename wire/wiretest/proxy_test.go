package wiretest_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// moment is the time after which an absent event counts as absent.
const moment = 50 * time.Millisecond

// behindProxy is a server with connections in the hands of the test, and a Proxy before it.
type behindProxy struct {
	*testing.T
	*wiretest.Proxy
	server net.Listener
}

func newBehindProxy(t *testing.T, f wiretest.Faults) behindProxy {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p, err := wiretest.NewProxy(server.Addr().String(), f)
	require.NoError(t, err)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
	})
	return behindProxy{t, p, server}
}

// connect returns both ends of a connection through the Proxy that has transmitted bytes already.
func (p behindProxy) connect() (client, server net.Conn) {
	client, err := net.Dial("tcp", p.Addr())
	require.NoError(p, err)
	server, err = p.server.Accept()
	require.NoError(p, err)
	p.Cleanup(func() {
		client.Close()
		server.Close()
	})
	p.pass(client, server)
	p.pass(server, client)
	return client, server
}

// pass sends bytes from one end and receives them at the other.
func (p behindProxy) pass(from, to net.Conn) {
	p.Helper()
	_, err := from.Write([]byte("hello"))
	require.NoError(p, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(to, got)
	require.NoError(p, err)
	require.Equal(p, "hello", string(got))
}

// silent requires that nothing can be read from c, not even its end.
func (p behindProxy) silent(c net.Conn) {
	p.Helper()
	require.NoError(p, c.SetReadDeadline(time.Now().Add(moment)))
	n, err := c.Read(make([]byte, 1))
	require.ErrorIs(p, err, os.ErrDeadlineExceeded)
	require.Zero(p, n)
	require.NoError(p, c.SetReadDeadline(time.Time{}))
}

// A proxy forwards in both directions to the end.
func TestProxy_BothWays(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	forward := func(from, to net.Conn) {
		sent := data(1 << 20)
		go func() { // ends with the connection
			from.Write(sent)
			from.Close()
		}()
		got, err := io.ReadAll(to)
		require.NoError(t, err)
		require.Equal(t, sent, got)
	}
	for range 2 {
		client, server := p.connect()
		forward(client, server)
		client, server = p.connect()
		forward(server, client)
	}
}

// Cut resets both sides, and new connections are accepted.
func TestProxy_Cut(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	client, server := p.connect()
	other, _ := p.connect()
	p.Cut()
	for _, c := range []net.Conn{client, server, other} {
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	}
	p.connect()
}

// A stall holds until Heal, and loses nothing.
func TestProxy_Stall(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	client, server := p.connect()
	p.Stall()
	for _, c := range []net.Conn{client, server} {
		_, err := c.Write([]byte("held"))
		require.NoError(t, err)
	}
	p.silent(client)
	p.silent(server)
	require.NoError(t, client.(*net.TCPConn).CloseWrite())
	p.silent(server)
	p.connect() // a new connection works meanwhile
	p.Heal()
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	require.Equal(t, "held", string(got))
}

// A half-open proxy loses bytes, and ends.
func TestProxy_HalfOpen(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	client, server := p.connect()
	other, otherServer := p.connect()
	p.HalfOpen()
	for _, c := range []net.Conn{client, server} {
		_, err := c.Write(bytes.Repeat([]byte("lost"), 1<<20))
		require.NoError(t, err, "more than any buffer holds, so it has vanished")
	}
	p.silent(client)
	p.silent(server)
	client.Close()
	p.silent(server)
	otherServer.Close()
	p.silent(other)
	fresh, freshServer := p.connect()
	p.Heal()
	p.silent(server)
	p.pass(fresh, freshServer)
	p.Cut()
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// Refuse ends new connections until Heal.
func TestProxy_Refuse(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	client, server := p.connect()
	p.Refuse()
	refused, err := net.Dial("tcp", p.Addr())
	if err == nil { // otherwise the reset was faster
		defer refused.Close()
		_, err = refused.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	p.pass(client, server)
	p.Heal()
	p.connect()
}

// A proxy ends the connection of a client without a target.
func TestProxy_NoTarget(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{})
	p.server.Close()
	client, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer client.Close()
		_, err = client.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// Each direction has its own faults.
func TestProxy_EachDirection(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{Out: wiretest.Direction{CorruptAt: 6}, In: wiretest.Direction{TruncateAfter: 8}})
	client, server := p.connect() // five bytes each way
	_, err := client.Write([]byte("x"))
	require.NoError(t, err)
	got := make([]byte, 1)
	_, err = io.ReadFull(server, got)
	require.NoError(t, err)
	require.NotEqual(t, "x", string(got))
	_, err = server.Write([]byte("hello"))
	require.NoError(t, err)
	all, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, "hel", string(all))
}

// Close cuts the remaining connections.
func TestProxy_Close(t *testing.T) {
	p := newBehindProxy(t, wiretest.Faults{Out: wiretest.Direction{Delay: time.Hour}})
	client, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer client.Close()
	server, err := p.server.Accept()
	require.NoError(t, err)
	defer server.Close()
	_, err = client.Write([]byte("never"))
	require.NoError(t, err)
	p.pass(server, client)
	require.NoError(t, p.Close())
	for _, c := range []net.Conn{client, server} {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	}
	_, err = net.Dial("tcp", p.Addr())
	require.Error(t, err)
}
