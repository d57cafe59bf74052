//go:build unix

package lease_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
)

// pausedTTL passes by the real clock.
const pausedTTL = 2 * time.Second

// TestClaimPaused_Process is the process that is paused. The process reads the URL of a node, and
// claims a key. After each further line, the process prints the state of its claim, and the
// outcomes of two calls in that role.
func TestClaimPaused_Process(t *testing.T) {
	nc, err := nats.Connect(natstest.InChild(t))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	in := bufio.NewScanner(os.Stdin)
	require.True(t, in.Scan())
	store := dialed(t, in.Text())
	claim, err := open(t, nc, pausedTTL, "paused").Await(t.Context(), "device/4711")
	require.NoError(t, err)
	marked := withMark(t.Context(), asHolder, claimMark(claim.Key(), claim.Epoch()))
	for in.Scan() {
		// the second call simulates one that had already passed the checks of this process
		_, own := whoami.Call(t.Context(), claim.Caller(store), "")
		_, raw := whoami.Call(marked, store, "")
		natstest.Say("%s; %s; %s", verdict(claim.Err()), verdict(own), verdict(raw))
	}
}

// verdict describes the error of a claim, or of a call in the role of its holder.
func verdict(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, lease.ErrLost):
		return "lost"
	case errors.Is(err, asterisque.ErrUnauthorized):
		return "rejected"
	}
	return err.Error()
}

// dialed returns a session with the node at a URL.
func dialed(t *testing.T, url string) *asterisque.Session {
	t.Helper()
	node := asterisque.NewNode()
	t.Cleanup(func() { node.Close() })
	s, err := node.Dial(t.Context(), url)
	require.NoError(t, err)
	return s
}

// listen returns the URL of a node with the fence of m.
func (m *claimant) listen(t *testing.T) (url string) {
	t.Helper()
	node := asterisque.NewNode(asterisque.WithService(m.fenceService()), asterisque.WithInboundInterceptors(m.fence().Intercept))
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- node.Serve(context.Background(), ln) }() // ends with the node
	t.Cleanup(func() {
		node.Close()
		<-served
	})
	return ln.URL()
}

func TestClaimPaused_LosesRole(t *testing.T) {
	t.Parallel()
	s := newClaimSite(t, pausedTTL)
	next, url := s.join("next"), s.join("store").listen(t)
	store := dialed(t, url)
	var paused *natstest.Child
	// a process with another answer was too slow to keep the key
	for said := ""; said != "ok; ok; ok"; said = paused.Said() {
		if paused != nil {
			paused.Kill()
		}
		paused = natstest.StartChild(t, "TestClaimPaused_Process", s.b.URL())
		paused.Tell(url)
		paused.Tell("say")
	}

	require.NoError(t, paused.Process.Signal(syscall.SIGSTOP))
	for lost := true; lost; { // this process may be too slow as well
		claim, err := next.Await(t.Context(), "device/4711")
		require.NoError(t, err)
		id, err := whoami.Call(t.Context(), claim.Caller(store), "")
		if lost = errors.Is(err, lease.ErrLost); !lost {
			require.NoError(t, err)
			require.Equal(t, "store", id)
		}
	}
	require.NoError(t, paused.Process.Signal(syscall.SIGCONT))
	paused.Tell("say")
	require.Equal(t, "lost; lost; rejected", paused.Said())
}
