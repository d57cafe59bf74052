//go:build unix

package restart

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// socket returns a listening socket to hand over, and its URL.
func socket(t *testing.T) (file *os.File, url string) {
	t.Helper()
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	file, err = wire.ListenerFile(ln)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file, ln.URL()
}

// replacements is the number of times that a server is replaced.
const replacements = 3

func TestRestart_BehindItsSocket(t *testing.T) {
	file, url := socket(t)
	server := start(t, inherited, file)
	l := begin(t, connect(t, url))
	for range replacements {
		l.reach(server.pid)
		next := start(t, inherited, file)
		server.leaves(syscall.SIGTERM)
		server = next
	}
	l.reach(server.pid)
	l.requireNoneFailed()
}

func TestRestart_ShortAbsence(t *testing.T) {
	file, url := socket(t)
	server := start(t, inherited, file)
	l := begin(t, connect(t, url))
	for range replacements {
		l.reach(server.pid)
		server.leaves(syscall.SIGTERM) // as with systemd, new connections wait in the socket
		server = start(t, inherited, file)
	}
	l.reach(server.pid)
	l.requireNoneFailed()
}

func TestRestart_HandsSocketOver(t *testing.T) {
	file, url := socket(t)
	first := start(t, inherited, file)
	require.NoError(t, file.Close(), "only the servers have it")
	l := begin(t, connect(t, url))
	l.reach(first.pid)
	first.signal(syscall.SIGUSR1)
	second := first.ready()
	l.reach(second)
	require.NoError(t, syscall.Kill(second, syscall.SIGUSR1))
	l.reach(first.ready())
	l.requireNoneFailed()
}

func TestRestart_ServersOverlap(t *testing.T) {
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{ReusePort: true})
	require.NoError(t, err)
	url := ln.URL()
	server := start(t, url)
	require.NoError(t, ln.Close(), "it has only chosen a port")
	l := begin(t, connect(t, url))
	for range replacements {
		l.reach(server.pid)
		next := start(t, url)
		server.leaves(syscall.SIGTERM)
		server = next
	}
	l.reach(server.pid)
	l.requireNoneFailed()
}

func TestShutdown_StreamFinishes(t *testing.T) {
	file, url := socket(t)
	old := start(t, inherited, file)
	conn := connect(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stream, err := count.Open(ctx, conn, struct{}{})
	require.NoError(t, err)
	echo := func(i int) {
		require.NoError(t, stream.Send(ctx, i))
		back, err := stream.Recv(ctx)
		require.NoError(t, err)
		require.Equal(t, i, back)
	}
	echo(1)
	next := start(t, inherited, file)
	old.signal(syscall.SIGTERM)
	begin(t, conn).reach(next.pid)
	echo(2)

	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv(ctx)
	require.ErrorIs(t, err, io.EOF)
	pid, err := stream.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, old.pid, pid)
	require.NoError(t, old.cmd.Wait(), "a graceful shutdown, after the stream")
}

func TestKill_FailsItsCallsOnly(t *testing.T) {
	file, url := socket(t)
	first := start(t, inherited, file)
	l := begin(t, connect(t, url))
	l.reach(first.pid)
	second := start(t, inherited, file)
	first.signal(syscall.SIGKILL)
	l.reach(second.pid)
	failed := 0
	for _, errs := range l.end() {
		require.LessOrEqual(t, len(errs), 1, "the one that was under way: %v", errs)
		for _, err := range errs {
			failed++
			require.False(t, asterisque.Repeatable(err), "it would have been made again: %v", err)
		}
	}
	t.Log("calls by server:", l.served, "failed:", failed)
}
