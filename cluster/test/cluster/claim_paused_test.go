//go:build unix

package cluster_test

import (
	"bufio"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/stretchr/testify/require"
)

// TestClaimPaused_Process is the process that is paused. It claims a key. For each line that it
// reads, it prints whether its claim is valid, and the outcomes of two calls in that role.
func TestClaimPaused_Process(t *testing.T) {
	cfg := cluster.Config{Name: "hubs", ID: "paused", NATS: natstest.InChild(t)}
	c := joined(t, cfg)
	store := callerOf(t, c, "store")
	claim, err := c.AwaitClaim(t.Context(), "device/4711")
	require.NoError(t, err)
	mark := holderMark(claim)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		// the second call simulates one that had already passed the checks of this process
		_, own := ownID.Call(t.Context(), claim.Caller(store), struct{}{})
		_, raw := ownID.Call(t.Context(), store, struct{}{}, asterisque.WithMetadata(mark))
		natstest.Say("%v; %v; %v", claim.Err() == nil, own == nil, raw == nil)
	}
}

func TestClaimPaused_LosesRole(t *testing.T) {
	t.Parallel()
	b := natstest.StartServer(t, broker.Config{})
	joined(t, listening(config(b, "store", "s")))
	c := joined(t, config(b, "hubs", "next"))
	store := callerOf(t, c, "store")
	var paused *natstest.Child
	// a process with another answer was too slow to keep the key
	for said := ""; said != "true; true; true"; said = paused.Said() {
		if paused != nil {
			paused.Kill()
		}
		paused = natstest.StartChild(t, "TestClaimPaused_Process", b.URL())
		paused.Tell("say")
	}

	require.NoError(t, paused.Process.Signal(syscall.SIGSTOP))
	for lost := true; lost; { // this process may be too slow as well
		next, err := c.AwaitClaim(t.Context(), "device/4711")
		require.NoError(t, err)
		id, err := ownID.Call(t.Context(), next.Caller(store), struct{}{})
		if lost = errors.Is(err, cluster.ErrLost); !lost {
			require.NoError(t, err)
			require.Equal(t, "s", id)
		}
	}
	require.NoError(t, paused.Process.Signal(syscall.SIGCONT))
	paused.Tell("say")
	require.Equal(t, "false; false; false", paused.Said())
}
