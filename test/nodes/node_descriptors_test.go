//go:build unix

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// crowded is a Listener in a process without free descriptors until a time.
type crowded struct {
	until  time.Time
	calls  int
	queue  chan wire.Wire
	closed chan struct{}
}

func (l *crowded) Accept() (wire.Wire, error) {
	l.calls++
	switch {
	case l.calls > 10_000:
		return nil, net.ErrClosed // a busy loop would never end
	case time.Now().Before(l.until):
		return nil, fmt.Errorf("wire: accept: %w", syscall.EMFILE)
	}
	select {
	case w := <-l.queue:
		return w, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *crowded) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (*crowded) URL() string { return "crowded://here" }

// Serve continues when descriptors are free again.
func TestServe_DescriptorsFreed(t *testing.T) {
	for _, minutes := range []time.Duration{0, 1, 60} {
		synctest.Test(t, func(t *testing.T) {
			ln := &crowded{until: time.Now().Add(minutes * time.Minute), queue: make(chan wire.Wire, 1), closed: make(chan struct{})}
			there := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithLogger(slog.New(slog.DiscardHandler)))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := make(chan error, 1)
			go func() { served <- there.Serve(ctx, ln) }()
			fakeclock.Sleep(time.Until(ln.until) + 2*time.Second)
			synctest.Wait()
			require.LessOrEqual(t, ln.calls, 10+130*int(minutes), "it tries once or twice in a second")

			a, b := wire.Pipe()
			ln.queue <- b
			sess, err := testkit.NewNode(t).Attach(t.Context(), a)
			require.NoError(t, err, "a waiting connection is accepted")
			require.NoError(t, sess.Close())
			stop()
			require.NoError(t, <-served, "Serve has not ended by itself")
		})
	}
}

// TestServe_DescriptorsUsedUp leaves this process a single descriptor, which is that of a
// connection from outside.
func TestServe_DescriptorsUsedUp(t *testing.T) {
	failed := make(chan struct{}, 1000)
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.MessageKey && strings.Contains(a.Value.String(), "accepting failed") {
			failed <- struct{}{}
		}
		return a
	}}))
	// independent of the speed of this machine
	patient := asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 5 * time.Minute})
	url := testkit.Serve(t, testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithLogger(log), patient))
	here := testkit.NewNode(t, patient)
	inside, err := here.Dial(t.Context(), url)
	require.NoError(t, err)

	free := useUpDescriptors(t)
	outside, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
	require.NoError(t, err, "the queue of the system takes it")
	<-failed
	_, err = os.Open(os.DevNull)
	require.ErrorIs(t, err, syscall.EMFILE)
	for range 100 {
		_, err := testkit.Echo.Call(t.Context(), inside, "still there")
		require.NoError(t, err)
	}
	free()
	sess, err := here.Attach(t.Context(), wire.FromConn(outside))
	require.NoError(t, err, "a queued connection is accepted")
	_, err = testkit.Echo.Call(t.Context(), sess, "at last")
	require.NoError(t, err)
}

// useUpDescriptors opens files until this process can open only one more. free closes the files, as
// does the end of the test.
func useUpDescriptors(t *testing.T) (free func()) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	now := before
	now.Cur = 256
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now))
	var files []*os.File
	free = func() {
		for _, f := range files {
			f.Close()
		}
		files = nil
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	}
	t.Cleanup(free)
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		require.NoError(t, err)
		files = append(files, f)
	}
	require.NotEmpty(t, files)
	require.NoError(t, files[len(files)-1].Close())
	return free
}
