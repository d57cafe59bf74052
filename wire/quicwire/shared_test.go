package quicwire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// Many wires share one connection.
func TestConn_ManyWires(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	c := dialFor(t, address(l), client)
	require.True(t, c.ConnectionState().HandshakeComplete)
	for i := range 10 {
		here, there := openOn(t, c, l)
		require.NoError(t, there.WriteFrames([][]byte{{byte(i)}}))
		frame, err := here.ReadFrame(1)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, frame)
		require.NoError(t, here.Close())
		_, err = there.ReadFrame(1)
		require.Equal(t, io.EOF, err)
	}
	openOn(t, c, l)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "repeated")
	_, err := c.Open()
	require.ErrorIs(t, err, net.ErrClosed)
}

// Closing a connection closes its wires gracefully.
func TestConn_Close(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	c := dialFor(t, address(l), client)
	here, there := openOn(t, c, l)
	require.NoError(t, here.WriteFrames([][]byte{[]byte("last words")}))
	require.NoError(t, c.Close())
	frame, err := there.ReadFrame(100)
	require.NoError(t, err)
	require.Equal(t, "last words", string(frame))
	_, err = there.ReadFrame(100)
	require.Equal(t, io.EOF, err)
	_, err = here.ReadFrame(100)
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, there.Close())
	<-c.quic.Context().Done()
}

// A connection has a bound on its sessions.
func TestConn_SessionBound(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	c := dialFor(t, address(l), client)
	for range sessions {
		_, err := c.Open()
		require.NoError(t, err)
	}
	_, err := c.Open()
	require.ErrorContains(t, err, "as many sessions as that side allows")
	require.NotErrorIs(t, err, net.ErrClosed)
	go func() { // ends with l
		for {
			w, err := l.Accept()
			if err != nil {
				return
			}
			w.Close()
		}
	}()
	require.NoError(t, c.Close())
}

// fill writes until the transport is full, and returns the number of bytes accepted.
func fill(t *testing.T, w wire.Wire) (bytes int) {
	t.Helper()
	frame := make([]byte, 16<<10)
	for {
		require.NoError(t, w.(deadliner).SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
		err := w.WriteFrames([][]byte{frame})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return bytes
		}
		require.NoError(t, err)
		bytes += len(frame)
	}
}

// Unread data of a peer is bounded.
func TestBuffer_Unread(t *testing.T) {
	server, client := testtls.Configs(t)
	here, there := connect(t, listenFor(t, server), client)
	for _, w := range both(here, there) {
		require.LessOrEqual(t, fill(t, w), firstWindow+32<<10)
	}
}

// The buffers of all sessions of a connection are bounded together.
func TestBuffer_AllSessions(t *testing.T) {
	const most = 32 << 20
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	c := dialFor(t, address(l), client)
	last, lastThere := openOn(t, c, l)
	var readers []wire.Wire
	var filled atomic.Int64
	var filling sync.WaitGroup
	for range 80 {
		here, there := openOn(t, c, l)
		readers = append(readers, there)
		filling.Go(func() { filled.Add(int64(fill(t, here))) })
	}
	filling.Wait()
	t.Logf("%d bytes", filled.Load())
	require.Less(t, filled.Load(), int64(most+80*32<<10))

	for _, w := range readers { // reading one wire makes room for all of them
		filling.Go(func() { w.Close() })
	}
	filling.Wait()
	require.NoError(t, last.(deadliner).SetWriteDeadline(time.Now().Add(hangs)))
	require.NoError(t, last.WriteFrames([][]byte{make([]byte, 100_000)}))
	_, err := lastThere.ReadFrame(100_000)
	require.NoError(t, err)
}

// An unread session blocks no other session.
func TestBuffer_UnreadSession(t *testing.T) {
	t.Parallel() // it waits
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	c := dialFor(t, address(l), client)
	for range 5 {
		here, there := openOn(t, c, l)
		fill(t, here)
		fill(t, there)
	}
	here, there := openOn(t, c, l)
	for _, w := range []struct{ from, to wire.Wire }{{here, there}, {there, here}} {
		done := make(chan error, 1)
		go func() {
			for range 32 {
				if _, err := w.to.ReadFrame(64 << 10); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		require.NoError(t, w.from.(deadliner).SetWriteDeadline(time.Now().Add(hangs)))
		for range 32 {
			require.NoError(t, w.from.WriteFrames([][]byte{make([]byte, 64<<10)}))
		}
		require.NoError(t, <-done)
	}
}
