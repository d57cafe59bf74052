package quicwire

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

var background = context.Background()

func TestURL_Invalid(t *testing.T) {
	for url, want := range map[string]string{
		"quic://":                      "the host is missing",
		"quic:127.0.0.1:1":             "two slashes are missing",
		"quic://127.0.0.1":             "the port is missing",
		"quic://127.0.0.1:1/path":      "has no meaning here",
		"quic://user@127.0.0.1:1":      "has no meaning here",
		"quic://127.0.0.1:1?a=b":       "has no meaning here",
		"quic://name.invalid:1":        "name.invalid",
		"quic://127.0.0.1:no-such-one": "invalid port",
	} {
		_, err := wire.Dial(t.Context(), url, wire.Options{})
		require.ErrorContains(t, err, want, url)
	}
	server, _ := testtls.Configs(t)
	_, err := wire.Listen(t.Context(), "quic://127.0.0.1", wire.Options{TLS: server})
	require.ErrorContains(t, err, "the port is missing")
	_, err = Dial(t.Context(), "127.0.0.1", nil)
	require.ErrorContains(t, err, "quicwire: dial 127.0.0.1")
}

// A host is dialled by name.
func TestDial_HostByName(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	_, port, err := net.SplitHostPort(address(l))
	require.NoError(t, err)
	dialFor(t, net.JoinHostPort("localhost", port), client)
}

// The context ends a dial.
func TestDial_ContextEnds(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancel(background)
	go func() { // ends with the first packet
		silent.ReadFrom(make([]byte, 1500))
		cancel()
	}()
	_, err = wire.Dial(ctx, "quic://"+silent.LocalAddr().String(), wire.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// The context of a dial has no effect on the Wire.
func TestDial_ContextAfterwards(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	ctx, cancel := context.WithCancel(background)
	here, err := wire.Dial(ctx, l.URL(), wire.Options{TLS: client})
	require.NoError(t, err)
	cancel()
	acceptFrom(t, here, l)
}

// whoCloses are the two ends in the order of closing.
var whoCloses = map[string]func(here, there wire.Wire) (first, other wire.Wire){
	"the dialler":  func(here, there wire.Wire) (first, other wire.Wire) { return here, there },
	"the acceptor": func(here, there wire.Wire) (first, other wire.Wire) { return there, here },
}

// Data written before Close arrives, even if it is read later.
func TestClose_WrittenArrives(t *testing.T) {
	for name, order := range whoCloses {
		t.Run(name, func(t *testing.T) {
			server, client := testtls.Configs(t)
			first, other := order(connect(t, listenFor(t, server), client))
			const n, size = 6, 64 << 10 // fits the first window
			for i := range n {
				frame := make([]byte, size)
				frame[0] = byte(i)
				require.NoError(t, first.WriteFrames([][]byte{frame}))
			}
			require.NoError(t, first.Close(), "does not wait for a peer that does not read, but for a moment")
			for i := range n {
				frame, err := other.ReadFrame(size)
				require.NoError(t, err)
				require.Equal(t, byte(i), frame[0])
			}
			_, err := other.ReadFrame(size)
			require.Equal(t, io.EOF, err)
		})
	}
}

func both(here, there wire.Wire) []wire.Wire { return []wire.Wire{here, there} }

// A connection ends when both sides have closed.
func TestClose_BothSides(t *testing.T) {
	for name, order := range whoCloses {
		t.Run(name, func(t *testing.T) {
			server, client := testtls.Configs(t)
			here, there := connect(t, listenFor(t, server), client)
			conn := here.(*quicWire).stream.conn
			first, other := order(here, there)
			require.NoError(t, first.Close())
			_, err := other.ReadFrame(100)
			require.Equal(t, io.EOF, err)
			require.NoError(t, conn.Context().Err(), "the other side may still have something to read")
			require.NoError(t, other.Close())
			select {
			case <-conn.Context().Done():
			case <-time.After(hangs):
				t.Fatal("the connection is still there")
			}
			bye := (*quic.ApplicationError)(nil)
			require.ErrorAs(t, context.Cause(conn.Context()), &bye)
			require.Zero(t, bye.ErrorCode)
		})
	}
}

// A peer that writes and does not read gets an error.
func TestClose_PeerStillWrites(t *testing.T) {
	for name, order := range whoCloses {
		t.Run(name, func(t *testing.T) {
			server, client := testtls.Configs(t)
			first, other := order(connect(t, listenFor(t, server), client))
			writing := make(chan error)
			go func() {
				for {
					if err := other.WriteFrames([][]byte{make([]byte, 10<<10)}); err != nil {
						writing <- err
						return
					}
				}
			}()
			require.NoError(t, first.Close())
			require.ErrorIs(t, <-writing, errPeerClosed)
		})
	}
}

// A Wire with a failed connection does not report a local Close.
func TestWire_ConnectionFails(t *testing.T) {
	server, client := testtls.Configs(t)
	here, there := connect(t, listenFor(t, server), client)
	here.(*quicWire).stream.conn.CloseWithError(7, "an application of its own")
	_, err := there.ReadFrame(100)
	require.ErrorContains(t, err, "an application of its own")
	require.NotErrorIs(t, err, net.ErrClosed)
	cut := (*quic.ApplicationError)(nil)
	require.ErrorAs(t, err, &cut)
	require.True(t, cut.Remote)
	require.EqualValues(t, 7, cut.ErrorCode)
	require.ErrorContains(t, there.WriteFrames([][]byte{nil}), "an application of its own")
}

func TestDeadline_ClosedWire(t *testing.T) {
	server, client := testtls.Configs(t)
	here, _ := connect(t, listenFor(t, server), client)
	d := here.(deadliner)
	require.NoError(t, d.SetReadDeadline(time.Now()))
	_, err := here.ReadFrame(100)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, here.Close())
	require.ErrorIs(t, d.SetReadDeadline(time.Time{}), net.ErrClosed)
	require.ErrorIs(t, d.SetWriteDeadline(time.Time{}), net.ErrClosed)
}

// Closing a listener leaves its wires open.
func TestListener_CloseKeepsWires(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	here, there := connect(t, l, client)
	idle := dialFor(t, address(l), client)
	for _, w := range both(openOn(t, idle, l)) { // so that both sides know the connection
		w.Close()
	}
	accepting := make(chan error)
	go func() {
		_, err := l.Accept()
		accepting <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-accepting, net.ErrClosed)
	require.NoError(t, l.Close(), "repeated")
	_, err := l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)

	require.NoError(t, there.WriteFrames([][]byte{[]byte("still here")}))
	frame, err := here.ReadFrame(100)
	require.NoError(t, err)
	require.Equal(t, "still here", string(frame))

	<-idle.quic.Context().Done()
	_, err = idle.Open()
	require.ErrorContains(t, err, "the listener was closed")
}

// A closed listener releases its port.
func TestListener_CloseFreesPort(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	require.NoError(t, l.Close())
	again, err := wire.Listen(t.Context(), l.URL(), wire.Options{TLS: server})
	require.NoError(t, err)
	defer again.Close()
	again.(transport.Guarded).Guard(nil)
	connect(t, again, client)
}

// The listener closes a connection without a session.
func TestConn_NoSession(t *testing.T) {
	server, client := testtls.Configs(t)
	l, err := listen(t.Context(), "127.0.0.1:0", server, 50*time.Millisecond)
	require.NoError(t, err)
	defer l.Close()
	l.(transport.Guarded).Guard(nil)
	never := dialFor(t, address(l), client)
	noMore, here, there := inTime(t, l, client)
	<-never.quic.Context().Done()
	_, err = never.Open()
	require.ErrorContains(t, err, "no session for too long")
	require.NoError(t, noMore.quic.Context().Err(), "this one has a session")
	here.Close()
	there.Close()
	<-noMore.quic.Context().Done()
}

// inTime opens a Wire on a connection of its own. It redials while l closes the connection before
// the first frame has arrived: the timeout is a few milliseconds here.
func inTime(t *testing.T, l wire.Listener, client *tls.Config) (c *Conn, here, there wire.Wire) {
	t.Helper()
	accepted := make(chan wire.Wire)
	go func() { // ends with the first Wire, or with l
		if w, err := l.Accept(); err == nil {
			accepted <- w
		}
	}()
	for end := time.Now().Add(hangs); time.Now().Before(end); {
		c, err := Dial(t.Context(), address(l), client)
		if err != nil {
			continue
		}
		t.Cleanup(func() { c.Close() })
		here, err := c.Open()
		if err != nil {
			continue
		}
		here.WriteFrames([][]byte{{}}) // or else the connection ends
		select {
		case there = <-accepted:
			_, err := there.ReadFrame(0)
			require.NoError(t, err)
			return c, here, there
		case <-c.quic.Context().Done():
			here.Close()
		}
	}
	t.Fatal("the listener closes every connection before its first frame")
	return nil, nil, nil
}
