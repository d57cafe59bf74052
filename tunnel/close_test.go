package tunnel_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// CloseWrite ends one direction.
func TestCloseWrite_OneDirection(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		write(t, here, "that is all")
		require.NoError(t, here.CloseWrite())
		wantRead(t, there, "that is all")
		wantEOF(t, there)
		wantEOF(t, there)
		_, err := here.Write([]byte("more"))
		wantError(t, pipe.ErrEnded, err)
		require.NoError(t, here.CloseWrite(), "again")
		require.NoError(t, here.SetDeadline(never), "deadlines do no harm")

		write(t, there, "the other one continues")
		require.NoError(t, there.CloseWrite())
		wantRead(t, here, "the other one continues")
		wantEOF(t, here)
	})
}

// CloseWrite sends the end of a large Write.
func TestCloseWrite_LargeWrite(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		content := noise(300_000)
		go func() {
			here.Write(content)
			here.CloseWrite()
		}()
		got, err := io.ReadAll(there)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
	})
}

// CloseWrite ends a Write that waits.
func TestCloseWrite_WaitingWrite(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		var n int
		written := make(chan error)
		go func() {
			var err error
			n, err = here.Write(make([]byte, 10<<20))
			written <- err
		}()
		synctest.Wait()
		require.NoError(t, here.CloseWrite())
		wantError(t, pipe.ErrEnded, <-written)
		got, err := io.ReadAll(there)
		require.NoError(t, err)
		require.Len(t, got, n, "what was accepted arrives")
	})
}

// CloseRead stops the writer of the peer.
func TestCloseRead_StopsPeer(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		write(t, there, "without a reader")
		synctest.Wait()
		require.NoError(t, here.CloseRead())
		require.NoError(t, here.CloseRead(), "again")
		wantEOF(t, here)
		synctest.Wait()
		_, err := there.Write([]byte("nor that"))
		wantError(t, asterisque.ErrStopped, err)
		write(t, here, "the other direction continues")
		wantRead(t, there, "the other direction continues")
	})
}

// Bytes written before Close arrive.
func TestClose_WrittenArrives(t *testing.T) {
	for _, size := range []int{1, 1000, 64 << 10, 3 << 20} {
		both(t, func(t *testing.T, here, there *tunnel.Conn) {
			content := noise(size)
			go func() {
				here.Write(content)
				here.Close()
			}()
			got, err := io.ReadAll(there)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
		})
	}
}

// A closed connection returns net.ErrClosed.
func TestClose_ErrorAfter(t *testing.T) {
	both(t, func(t *testing.T, here, there *tunnel.Conn) {
		write(t, there, "unread")
		synctest.Wait()
		require.NoError(t, here.Close())
		require.NoError(t, here.Close(), "again")
		for name, f := range map[string]func() error{
			"Read":          func() error { _, err := here.Read(make([]byte, 1)); return err },
			"empty Read":    func() error { _, err := here.Read(nil); return err },
			"WriteTo":       func() error { _, err := here.WriteTo(io.Discard); return err },
			"Write":         func() error { _, err := here.Write(make([]byte, 1)); return err },
			"ReadFrom":      func() error { _, err := here.ReadFrom(strings.NewReader("x")); return err },
			"CloseRead":     here.CloseRead,
			"CloseWrite":    here.CloseWrite,
			"deadline":      func() error { return here.SetDeadline(never) },
			"readDeadline":  func() error { return here.SetReadDeadline(never) },
			"writeDeadline": func() error { return here.SetWriteDeadline(never) },
		} {
			t.Log(name)
			wantError(t, net.ErrClosed, f())
		}
		synctest.Wait()
		wantEOF(t, there)
		_, err := there.Write([]byte("too late"))
		require.True(t, errors.Is(err, asterisque.ErrStopped) || errors.Is(err, pipe.ErrClosed), "%v", err)
	})
}

// Close wakes waiting Reads and Writes.
func TestClose_WakesAll(t *testing.T) {
	both(t, func(t *testing.T, here, _ *tunnel.Conn) {
		errs := make(chan error)
		for range 2 {
			go func() { _, err := here.Read(make([]byte, 1)); errs <- err }()
			go func() { _, err := here.Write(make([]byte, 10<<20)); errs <- err }()
			go func() { _, err := here.WriteTo(io.Discard); errs <- err }()
			go func() { _, err := here.ReadFrom(zeros{}); errs <- err }()
		}
		synctest.Wait()
		require.Empty(t, errs)
		require.NoError(t, here.Close())
		for range 8 {
			wantError(t, net.ErrClosed, <-errs)
		}
	})
}

// The call ends when both sides have closed.
func TestClose_EndOfCall(t *testing.T) {
	for _, first := range []string{"dialler", "acceptor"} {
		synctest.Test(t, func(t *testing.T) {
			svc := asterisque.NewService()
			ln := tunnel.Listen(svc, number, "test")
			here, there := inMemory(t, svc)
			a, b := pair(t, here, ln)
			if first == "acceptor" {
				a, b = b, a
			}
			write(t, a, "x")
			require.Len(t, there.Pipes(), 1)
			require.NoError(t, a.Close())
			synctest.Wait()
			require.NoError(t, b.Close())
			synctest.Wait()
			require.Empty(t, here.Pipes(), first)
			require.Empty(t, there.Pipes(), first)
			require.Zero(t, there.Stats().Running)
		})
	}
}
