package cluster

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
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
		var taken *HeldError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, "a", taken.Holder)

		later, err := second.TakeOver(t.Context(), "device/4711")
		require.NoError(t, err)
		<-held.Done()
		require.ErrorIs(t, held.Err(), ErrLost)
		require.Greater(t, later.Epoch(), held.Epoch())
		require.Equal(t, "b", ask(t, device))
		h, there, err := c.Lookup(t.Context(), "device/4711")
		require.NoError(t, err)
		require.True(t, there)
		require.Equal(t, Holder{"hubs", "b", later.Epoch()}, h)
	})
}

func TestKeys_HolderLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		first, second := joined(t, brief(listening(config(b, "hubs", "a")))), joined(t, brief(config(b, "hubs", "b")))
		_, err := first.Claim(t.Context(), "leader")
		require.NoError(t, err)
		leader := joined(t, brief(config(b, "", ""))).Holder("leader")
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
		require.ErrorIs(t, err, ErrLost)
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
		require.ErrorIs(t, claim.Err(), ErrReleased)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err = second.Claim(ctx, "leader")
		require.NoError(t, err)
		_, err = first.Claim(ctx, "leader")
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
	})
}

func TestKeys_PeerLimit(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "", ""))
		joined(t, config(b, "hubs", "first"))
		on, err := c.peers.at(c, Holder{Name: "hubs", Node: "first"})
		require.NoError(t, err)
		require.Equal(t, "first", ask(t, on))
		for i := range mostPeers {
			c.peers.all[time.Duration(i).String()] = &peerCaller{used: time.Now().Add(time.Hour)}
		}
		_, err = c.peers.at(c, Holder{Name: "hubs", Node: "another"})
		require.NoError(t, err)
		require.NotContains(t, c.peers.all, "hubs.first")
		require.Eventually(t, func() bool {
			_, err := ownID.Call(t.Context(), on, struct{}{}, asterisque.WithFailFast())
			return err != nil && asterisque.Repeatable(err)
		}, natstest.Timeout, 10*time.Millisecond)
	})
}

// holderMark returns the metadata of a call in the role of the holder of a claim.
func holderMark(c *Claim) asterisque.Metadata {
	return asterisque.Metadata{"asterisque.as": strconv.FormatUint(c.Epoch(), 10) + " " + c.Key()}
}

func TestLostError_Text(t *testing.T) {
	t.Parallel()
	lost := &LostError{Key: "k", Epoch: 7}
	require.NotErrorIs(t, lost, context.Canceled)
	require.EqualError(t, lost, `cluster: the claim is lost: "k" with epoch 7; stop the work that needs it, and claim it again to continue`)
	lost.Cause = errors.New("its lease ran out")
	require.ErrorContains(t, lost, "7: its lease ran out;")
	lost.Holder, lost.HolderEpoch = "b", 8
	require.ErrorContains(t, lost, `7: the node "b" holds it with epoch 8;`)
}
