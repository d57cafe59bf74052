package quicwire

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// Everything arrives over a lossy path.
func TestPath_Lossy(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	r := newRelay(t, address(l), time.Millisecond, 0.05)
	here, err := wire.Dial(t.Context(), "quic://"+r.address(), wire.Options{TLS: client})
	require.NoError(t, err)
	there := acceptFrom(t, here, l)
	defer endAll(l)
	const n = 500
	written := make(chan error, 1)
	go func() {
		for i := range n {
			frame := make([]byte, 1000)
			frame[0], frame[1] = byte(i>>8), byte(i)
			if err := here.WriteFrames([][]byte{frame}); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for i := range n {
		frame, err := there.ReadFrame(1000)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i >> 8), byte(i)}, frame[:2])
	}
	require.NoError(t, <-written)
}

// A Wire survives a change of its client's address.
func TestPath_ClientAddress(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	r := newRelay(t, address(l), 0, 0)
	here, err := wire.Dial(t.Context(), "quic://"+r.address(), wire.Options{TLS: client})
	require.NoError(t, err)
	there := acceptFrom(t, here, l)
	defer endAll(l)
	for range 5 {
		r.rebind(t)
		for _, w := range []struct{ from, to wire.Wire }{{here, there}, {there, here}} {
			require.NoError(t, w.from.WriteFrames([][]byte{[]byte("moved")}))
			frame, err := w.to.ReadFrame(100)
			require.NoError(t, err)
			require.Equal(t, "moved", string(frame))
		}
	}
}

// The timeouts fit those of a session.
func TestConfig_Times(t *testing.T) {
	const ping, timeout = 15 * time.Second, 45 * time.Second // a session's own, by default
	require.Greater(t, keepAlive, ping, "a session that pings needs no packets beside")
	require.Less(t, keepAlive, 30*time.Second, "routers forget")
	require.Greater(t, idleTime, timeout, "a session notices first")
	require.Greater(t, idleTime, 2*keepAlive, "one lost packet does not end an idle connection")
}

// A peer that vanishes is detected.
func TestPath_PeerVanishes(t *testing.T) {
	t.Parallel() // it waits
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	cfg := config(-1)
	// QUIC uses the lesser value of both sides, and rejects lower values than this.
	cfg.MaxIdleTimeout = 5 * time.Second
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer socket.Close()
	from := &quic.Transport{Conn: socket}
	to, err := net.ResolveUDPAddr("udp", address(l))
	require.NoError(t, err)
	conn, err := from.Dial(background, to, clientTLS(client, "127.0.0.1"), cfg)
	require.NoError(t, err)
	str, err := conn.OpenStream()
	require.NoError(t, err)
	there := acceptFrom(t, newWire(&streamConn{conn: conn, quic: str, over: func() {}}), l)
	from.Close() // without a word
	_, err = there.ReadFrame(100)
	require.ErrorContains(t, err, "no recent network activity")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, net.ErrClosed)
}
