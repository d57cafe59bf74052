package lease_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestClaim_OneHolder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		first := a.has(t, "device/4711")
		require.Equal(t, "device/4711", first.Key())
		require.NoError(t, first.Err())
		for name, m := range map[string]*claimant{"another node": b, "the holder itself": a} {
			_, err := m.Claim(t.Context(), "device/4711")
			var held *heldErr
			require.ErrorAs(t, err, &held, name)
			require.Equal(t, &heldErr{lease.Held{Key: "device/4711", Holder: "a", Epoch: first.Epoch()}}, held, name)
		}
		other := b.has(t, "device/4712")
		require.NoError(t, first.Release(t.Context()))
		require.ErrorIs(t, first.Err(), lease.ErrReleased)
		<-first.Done()

		second := b.has(t, "device/4711")
		require.Greater(t, second.Epoch(), first.Epoch())
		require.NoError(t, first.Release(t.Context()), "again")
		h, held, err := a.Lookup(t.Context(), "device/4711")
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, lease.Holder{Node: "b", Epoch: second.Epoch()}, h)
		require.NoError(t, b.Close(t.Context()))
		require.ErrorIs(t, second.Err(), lease.ErrReleased)
		require.ErrorIs(t, other.Err(), lease.ErrReleased)
		_, held, err = a.Lookup(t.Context(), "device/4711")
		require.NoError(t, err)
		require.False(t, held)
		_, err = b.Claim(t.Context(), "device/4711")
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
	})
}

func TestClaim_ValidKeys(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		for _, key := range []string{
			"", ".", "/", ".a", "a.", "/a", "a/", "a..b", "a b", "a*", "a>", "ä", "a\x00", "\xff", "a\r\nPUB x 0", strings.Repeat("k", 201),
		} {
			for name, do := range map[string]func(context.Context, string) (*lease.Claim, error){"claim": a.Claim, "takeOver": a.TakeOver, "await": a.Await} {
				_, err := do(t.Context(), key)
				require.ErrorIs(t, err, asterisque.ErrBadParams, "%s %q", name, key)
			}
			_, _, err := a.Lookup(t.Context(), key)
			require.ErrorIs(t, err, asterisque.ErrBadParams, "%q", key)
		}
		for _, key := range []string{"a", "-", "_", "=", "a/b.c//d=-_Z9", strings.Repeat("k", 200)} {
			c := a.has(t, key)
			require.NoError(t, c.Release(t.Context()), key)
		}
	})
}

func TestClaim_OtherTTL(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a", func(cfg *lease.Config) { cfg.TTL = time.Hour })
		_, err := a.Claim(t.Context(), "k")
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, "5m0s")
		_, err = a.Await(t.Context(), "k")
		require.ErrorIs(t, err, asterisque.ErrUnavailable, "waiting does not mend it")
	})
}

func TestRelease_Retry(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.Release(over), context.Canceled)
		require.ErrorIs(t, c.Err(), lease.ErrReleased, "for this node in any case")
		_, err := b.Claim(t.Context(), "k")
		require.ErrorAs(t, err, new(*heldErr))
		require.NoError(t, c.Release(t.Context()))
		b.has(t, "k")
	})
}

// The entry has a revision that the claim has not received.
func TestRelease_DuringRenewal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		a.renews(t)
		a.kv.Fail(nil, nil)
		require.NoError(t, c.Release(t.Context()))
		b.has(t, "k")
	})
}

// The answer to the claim was lost: there is an entry without a known claim.
func TestClaim_OwnLeftover(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		_, err := a.Claim(t.Context(), "k")
		require.ErrorIs(t, err, natstest.ErrLostAnswer)
		_, err = b.Claim(t.Context(), "k")
		require.ErrorAs(t, err, new(*heldErr))
		a.kv.Fail(nil, nil)
		a.has(t, "k")
	})
}

func TestClaim_ForeignEntry(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		for i, value := range []string{"", "[]", `{"node":"a.b *>","epoch":18446744073709551615}`} {
			key := fmt.Sprint("k", i)
			_, err := a.kv.PutString(t.Context(), key, value)
			require.NoError(t, err)
			_, err = a.Claim(t.Context(), key)
			require.ErrorAs(t, err, new(*heldErr), value)
		}
		a.takes(t, "k0")
		a.takes(t, "k1")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := a.TakeOver(ctx, "k2")
		require.ErrorIs(t, err, context.DeadlineExceeded, "no epoch is beyond that one")
	})
}

// Claims of one key in one node follow each other.
func TestClaim_OncePerNode(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		begun, goOn := make(chan struct{}), make(chan struct{})
		a.kv.Once(func() { close(begun); <-goOn })
		first := make(chan *lease.Claim, 1)
		go func() { // ends with the claim
			c, _ := a.Claim(context.Background(), "k")
			first <- c
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := a.Claim(ctx, "k")
		require.ErrorIs(t, err, context.Canceled, "it waits")
		second := make(chan error, 1)
		go func() { // ends with the claim
			_, err := a.TakeOver(context.Background(), "k")
			second <- err
		}()
		close(goOn)
		require.NotNil(t, <-first)
		require.ErrorAs(t, <-second, new(*heldErr))
	})
}
