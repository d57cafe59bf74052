package lease_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/race"
)

func TestFence_OldHolder(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		// without hints, so that a does not know
		a, b, peer := s.join("a"), s.join("b", withoutHints), s.join("peer")
		on := peer.callable(t)
		before := a.has(t, "k")
		for range 2 {
			_, err := whoami.Call(t.Context(), before.Caller(on), "")
			require.NoError(t, err)
		}
		after := b.takes(t, "k")
		_, err := whoami.Call(t.Context(), before.Caller(on), "")
		require.NoError(t, err, "the peer does not know of the new one yet")
		_, err = whoami.Call(t.Context(), after.Caller(on), "")
		require.NoError(t, err)
		ran := peer.ran.Load()

		_, err = whoami.Call(t.Context(), before.Caller(on), "")
		requireNotRun(t, peer, ran, err, asterisque.ErrUnauthorized)
		require.ErrorContains(t, err, fmt.Sprintf(`"k" has epoch %d, and epoch %d has held it since`, before.Epoch(), after.Epoch()))
		p, err := ticks.Open(t.Context(), before.Caller(on), "")
		if err == nil {
			_, err = p.Result(t.Context())
		}
		requireNotRun(t, peer, ran, err, asterisque.ErrUnauthorized)
	})
}

func TestFence_UnknownKey(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b, peer := s.join("a"), s.join("b", withoutHints), s.join("peer")
		on := peer.callable(t)
		before := a.has(t, "k")
		after := b.takes(t, "k")
		reads := countReads(t, s)
		for range 3 {
			_, err := whoami.Call(t.Context(), before.Caller(on), "")
			requireNotRun(t, peer, 0, err, asterisque.ErrUnauthorized)
			require.ErrorContains(t, err, fmt.Sprint(after.Epoch()))
		}
		_, err := whoami.Call(t.Context(), after.Caller(on), "")
		require.NoError(t, err)
		requireReads(t, reads, 1, "and remembers the answer")
	})
}

func TestFence_ForgedEpoch(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, peer := s.join("a"), s.join("peer")
		on := peer.callable(t)
		c := a.has(t, "k")
		for _, value := range []string{"18446744073709551615 k", claimMark("k", c.Epoch()+1), "7 unheld"} {
			_, err := whoami.Call(withMark(t.Context(), asHolder, value), on, "")
			requireNotRun(t, peer, 0, err, asterisque.ErrUnauthorized)
			require.ErrorContains(t, err, "NATS knows of no such claim")
		}
		_, err := whoami.Call(t.Context(), c.Caller(on), "")
		require.NoError(t, err)
	})
}

func TestFence_WithoutNATS(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, peer := s.join("a"), s.join("peer")
		on := peer.callable(t)
		known, other := a.has(t, "known"), a.has(t, "other")
		_, err := whoami.Call(t.Context(), known.Caller(on), "")
		require.NoError(t, err)
		peer.nc.Close()
		_, err = whoami.Call(t.Context(), other.Caller(on), "")
		requireNotRun(t, peer, 1, err, asterisque.ErrUnavailable)
		_, err = whoami.Call(t.Context(), known.Caller(on), "")
		require.NoError(t, err)
	})
}

// NATS does not answer: some calls wait for their lookups, and the others for their turn.
func TestFence_LookupLimit(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const (
			calls    = 40
			lookups  = 16
			patience = 2 * time.Second
		)
		s := newClaimSite(t, longTTL)
		a, peer := s.join("a"), s.join("peer")
		on := peer.callable(t)
		var holders [calls]asterisque.Caller
		for i := range holders {
			holders[i] = a.has(t, fmt.Sprint("k", i)).Caller(on)
		}
		callAll := func() <-chan error {
			answers := make(chan error, calls)
			for _, holder := range holders {
				go func() { // ends with its call
					_, err := whoami.Call(context.Background(), holder, "")
					answers <- err
				}()
			}
			return answers
		}
		withheld, restore := s.withholdReads()
		begin := time.Now()
		answers := callAll()
		synctest.Wait()
		require.EqualValues(t, lookups, withheld.Load())
		require.Empty(t, answers)
		for range calls {
			requireNotRun(t, peer, 0, <-answers, asterisque.ErrUnavailable)
		}
		require.Equal(t, patience, time.Since(begin))

		restore()
		answers = callAll()
		for range calls {
			require.NoError(t, <-answers)
		}
		require.Equal(t, patience, time.Since(begin), "none of them waits for a turn that is never given back")
	})
}

func TestFence_OnlyHolderServes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		on := a.callable(t)
		c := a.has(t, "k")
		ctx := withMark(t.Context(), toHolder, claimMark("k", c.Epoch()))
		ownID, err := whoami.Call(ctx, on, "")
		require.NoError(t, err)
		require.Equal(t, "a", ownID)
		for _, value := range []string{claimMark("k", c.Epoch()+1), claimMark("k", c.Epoch()-1), claimMark("other", c.Epoch())} {
			_, err = whoami.Call(withMark(t.Context(), toHolder, value), on, "")
			requireNotRun(t, a, 1, err, asterisque.ErrUnavailable)
			var abort *asterisque.Abort
			require.ErrorAs(t, err, &abort)
			require.Equal(t, "asterisque.cluster: not the holder", string(abort.Detail))
		}
		a.clock.advance(s.lease())
		_, err = whoami.Call(ctx, on, "")
		requireNotRun(t, a, 1, err, asterisque.ErrUnavailable)
	})
}

func TestFence_BadMetadata(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		on := a.callable(t)
		for _, name := range []string{asHolder, toHolder} {
			for _, value := range []any{"", " ", "k", "7", "7 ", " k", "0 k", "-1 k", "+1 k", "18446744073709551616 k", "7 k k", "7  k", "7 k.", []byte("\xff"), []byte{}} {
				_, err := whoami.Call(asterisque.ContextWithMetadata(t.Context(), asterisque.Metadata{name: value}), on, "")
				requireNotRun(t, a, 0, err, asterisque.ErrBadParams)
				require.ErrorContains(t, err, name)
			}
		}
		_, err := whoami.Call(withMark(t.Context(), "asterisque.other", "x"), on, "")
		require.NoError(t, err)
	})
}

func TestFence_OtherCallsAreFree(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector drops pooled objects")
	}
	s := newClaimSite(t, longTTL)
	a := s.join("a")
	passes := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error { return next(ctx, c) }
	allocations := func(around asterisque.Interceptor) float64 {
		on := fenceSessionTo(t, asterisque.WithService(a.fenceService()), asterisque.WithInboundInterceptors(around))
		return testing.AllocsPerRun(2000, func() {
			_, err := whoami.Call(context.Background(), on, "")
			require.NoError(t, err)
		})
	}
	require.LessOrEqual(t, allocations(a.fence().Intercept), allocations(passes))
}
