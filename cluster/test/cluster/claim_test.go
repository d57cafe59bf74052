package cluster_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestKeys_HolderServes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		first, second := joined(t, listening(config(b, "hubs", "a"))), joined(t, config(b, "hubs", "b"))
		c := joined(t, config(b, "", ""))
		device := c.Holder("device/4711")
		_, err := ownID.Call(t.Context(), device, struct{}{}, asterisque.WithFailFast())
		require.ErrorIs(t, err, asterisque.ErrUnavailable)

		held, err := first.Claim(t.Context(), "device/4711")
		require.NoError(t, err)
		require.Equal(t, "a", ask(t, device))
		_, err = second.Claim(t.Context(), "device/4711")
		var taken *cluster.HeldError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, "a", taken.Holder)

		later, err := second.TakeOver(t.Context(), "device/4711")
		require.NoError(t, err)
		<-held.Done()
		require.ErrorIs(t, held.Err(), cluster.ErrLost)
		require.Greater(t, later.Epoch(), held.Epoch())
		require.Equal(t, "b", ask(t, device))
		h, there, err := c.Lookup(t.Context(), "device/4711")
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, cluster.Holder{Name: "hubs", Node: "b", Epoch: later.Epoch()}, h)
	})
}

func TestKeys_HolderLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		first, second := joined(t, listening(config(b, "hubs", "a"))), joined(t, config(b, "hubs", "b"))
		_, err := first.Claim(t.Context(), "leader")
		require.NoError(t, err)
		leader := joined(t, config(b, "", "")).Holder("leader")
		require.Equal(t, "a", ask(t, leader))
		next := make(chan error, 1)
		go func() { // ends with the test
			_, err := second.AwaitClaim(t.Context(), "leader")
			next <- err
		}()
		vanish(first)
		require.Equal(t, "b", ask(t, leader))
		require.NoError(t, <-next)
	})
}

func TestKeys_OldHolder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "store", "s"))
		older, newer := joined(t, config(b, "hubs", "a")), joined(t, config(b, "hubs", "b"))
		before, err := older.Claim(t.Context(), "device/4711")
		require.NoError(t, err)
		store := callerOf(t, older, "store")
		require.Equal(t, "s", ask(t, before.Caller(store)))

		after, err := newer.TakeOver(t.Context(), "device/4711")
		require.NoError(t, err)
		require.Equal(t, "s", ask(t, after.Caller(callerOf(t, newer, "store"))))
		<-before.Done()
		_, err = ownID.Call(t.Context(), before.Caller(store), struct{}{})
		require.ErrorIs(t, err, asterisque.ErrUnauthorized)
		require.ErrorIs(t, err, cluster.ErrLost)
		// a process that was paused in between sends its call late
		mark := holderMark(before)
		_, err = ownID.Call(t.Context(), store, struct{}{}, asterisque.WithMetadata(mark))
		require.ErrorIs(t, err, asterisque.ErrUnauthorized)
		require.ErrorContains(t, err, "has held it since")
	})
}

func TestKeys_NodeLeaves(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		first, second := joined(t, config(b, "hubs", "a")), joined(t, config(b, "hubs", "b"))
		claim, err := first.Claim(t.Context(), "leader")
		require.NoError(t, err)
		require.NoError(t, first.Close())
		require.ErrorIs(t, claim.Err(), cluster.ErrReleased)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = second.Claim(ctx, "leader")
		require.NoError(t, err)
		_, err = first.Claim(ctx, "leader")
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
	})
}

// The sessions with holders of keys are bounded: the least recently used one is closed, and a call
// for its key dials again.
func TestKeys_PeerLimit(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const peers = 1024
		b := natstest.StartServer(t, broker.Config{})
		first, c := joined(t, listening(config(b, "hubs", "first"))), joined(t, config(b, "", ""))
		_, err := first.Claim(t.Context(), "first")
		require.NoError(t, err)
		require.Equal(t, "first", ask(t, c.Holder("first")))
		claims := bucket(t, c, "claims")
		for i := range peers { // the entries of nodes that cannot be reached
			fakeclock.Sleep(time.Nanosecond) // these are used later
			key := fmt.Sprint("key", i)
			_, err := claims.PutString(t.Context(), key, fmt.Sprintf(`{"name":"hubs","node":"gone%d","instance":"x","epoch":1}`, i))
			require.NoError(t, err)
			_, err = ownID.Call(t.Context(), c.Holder(key), struct{}{}, asterisque.WithFailFast())
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, fmt.Sprint("gone", i))
			if i < peers-1 {
				require.Len(t, first.Node().Sessions(), 1)
			}
		}
		require.Eventually(t, func() bool { return len(first.Node().Sessions()) == 0 }, natstest.Timeout, 10*time.Millisecond)
		require.Equal(t, "first", ask(t, c.Holder("first")))
	})
}

// holderMark returns the metadata of a call in the role of the holder of a claim.
func holderMark(c *cluster.Claim) asterisque.Metadata {
	return asterisque.Metadata{"asterisque.as": strconv.FormatUint(c.Epoch(), 10) + " " + c.Key()}
}
