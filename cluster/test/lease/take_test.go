package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestTakeOver_NotifiesLoser(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		c := a.has(t, "k")
		next := b.takes(t, "k")
		require.Greater(t, next.Epoch(), c.Epoch())
		synctest.Wait()
		require.Error(t, c.Err(), "before its next renewal")
		lost := requireLost(t, c)
		require.Equal(t, "b", lost.Holder)
		require.Equal(t, next.Epoch(), lost.HolderEpoch)
		require.ErrorIs(t, c.Release(t.Context()), lease.ErrLost)
		require.NoError(t, next.Err(), "the release of the old one takes nothing away")
		_, held, err := a.Lookup(t.Context(), "k")
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestTakeOver_FreeKey(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a := s.join("a")
		a.takes(t, "k")
		_, err := a.TakeOver(t.Context(), "k")
		require.ErrorAs(t, err, new(*heldErr), "not from itself")
	})
}

// A new process of the same name does not own the claims of the old one.
func TestClaim_OtherInstance(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		before, after := s.join("a"), s.join("a")
		c := before.has(t, "k")
		_, err := after.Claim(t.Context(), "k")
		var held *heldErr
		require.ErrorAs(t, err, &held)
		require.Equal(t, "a", held.Holder)
		next := after.takes(t, "k")
		requireLost(t, c)
		require.Never(t, func() bool { return next.Err() != nil }, 100*time.Millisecond, 10*time.Millisecond, "both report it")
	})
}

// Epochs continue where those of the old bucket have ended.
func TestEpochs_BucketLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		var epochs []uint64
		for i := range 5 {
			for range 20 - 4*i { // each bucket has fewer messages than the one before
				c := a.has(t, "k")
				epochs = append(epochs, c.Epoch())
				require.NoError(t, c.Release(t.Context()))
			}
			c := a.has(t, "k")
			s.deleteBucket()
			s.makeBucket()
			next := b.has(t, "k")
			require.Equal(t, "b", requireLost(t, c).Holder, "by its next renewal")
			epochs = append(epochs, c.Epoch(), next.Epoch())
			require.NoError(t, next.Release(t.Context()))
		}
		requireGrowing(t, epochs)
	})
}

func TestClaim_BucketLost(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, time.Second)
		a := s.join("a")
		c := a.has(t, "k")
		s.deleteBucket()
		requireLost(t, c)
		s.makeBucket()
		a.has(t, "k")
	})
}

// Between the position and the write, another node holds the key for a moment.
func TestClaim_OldPosition(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		var between *lease.Claim
		a.kv.Once(func() {
			between = b.has(t, "k")
			require.NoError(t, between.Release(t.Context()))
		})
		require.Greater(t, a.has(t, "k").Epoch(), between.Epoch())
	})
}

// Between the position and the write, the bucket is created again. In the new bucket the key was
// held already, and has no entry now.
func TestClaim_OtherBucket(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		a, b := s.join("a"), s.join("b")
		for i := range 10 {
			a.has(t, fmt.Sprint("k", i))
		}
		var between *lease.Claim
		a.kv.Once(func() {
			s.deleteBucket()
			s.makeBucket()
			between = b.has(t, "k")
			s.purgeBucket()
		})
		require.Greater(t, a.has(t, "k").Epoch(), between.Epoch())
	})
}

func requireGrowing(t *testing.T, epochs []uint64) {
	t.Helper()
	for i := 1; i < len(epochs); i++ {
		require.Greater(t, epochs[i], epochs[i-1], "%d of %d", i, len(epochs))
	}
}

// claimWinners records the epochs of the winners of a key.
type claimWinners struct {
	mu      sync.Mutex
	highest uint64 // guarded by mu, as all below
	all     map[uint64]string
	inside  int
	faults  []string
}

func (w *claimWinners) known() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.highest
}

// won is called by a winner. known is the highest epoch before its attempt. With exclusive there
// are no takeovers.
func (w *claimWinners) won(node string, c *lease.Claim, known uint64, exclusive bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Epoch() <= known {
		w.faults = append(w.faults, fmt.Sprintf("%s has won with %d after %d", node, c.Epoch(), known))
	}
	if before := w.all[c.Epoch()]; before != "" {
		w.faults = append(w.faults, fmt.Sprintf("%s and %s have won with %d", before, node, c.Epoch()))
	}
	if exclusive && w.inside > 0 {
		w.faults = append(w.faults, node+" has won while another one holds it")
	}
	w.all[c.Epoch()], w.highest = node, max(w.highest, c.Epoch())
	w.inside++
}

func (w *claimWinners) left() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
}

// fight makes several nodes call try for one key, each in a number of rounds.
func fight(t *testing.T, s *claimSite, exclusive bool, try func(m *claimant) (*lease.Claim, error)) {
	const nodes, rounds = 4, 25
	w := &claimWinners{all: make(map[uint64]string)}
	var all sync.WaitGroup
	for i := range nodes {
		m := s.join(fmt.Sprint("n", i))
		all.Go(func() { // ends with its rounds
			for range rounds {
				known := w.known()
				c, err := try(m)
				if err != nil {
					continue
				}
				w.won(m.node, c, known, exclusive)
				if rand.IntN(2) == 0 {
					m.beginsRenewal(c)
				}
				w.left()
				c.Release(context.Background())
			}
		})
	}
	all.Wait()
	require.Empty(t, w.faults)
	require.Greater(t, len(w.all), rounds/4)
}

// beginsRenewal waits until m is about to renew its only claim, or has lost it.
func (m *claimant) beginsRenewal(c *lease.Claim) {
	begun := make(chan struct{})
	m.kv.Once(func() { close(begun) })
	select {
	case <-begun:
	case <-c.Done():
	}
}

func TestEpochs_ManyTakeovers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		fight(t, s, false, func(m *claimant) (*lease.Claim, error) {
			if rand.IntN(2) == 0 {
				return m.TakeOver(context.Background(), "k")
			}
			return m.Claim(context.Background(), "k")
		})
	})
}

func TestClaim_IsExclusive(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newClaimSite(t, longTTL)
		fight(t, s, true, func(m *claimant) (*lease.Claim, error) {
			if rand.IntN(2) == 0 {
				return m.Await(context.Background(), "k")
			}
			return m.Claim(context.Background(), "k")
		})
	})
}
