package interceptors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttackRatePerPeer_NewPeers expects at most mostPeers rates, and none of a known peer lost.
func TestAttackRatePerPeer_NewPeers(t *testing.T) {
	p := newPeerRates(10, 5) // half a second until a rate equals a new one
	now := time.Now()
	known := p.of("known", now)
	for i := range 2 * mostPeers {
		r := p.of(fmt.Sprint("stranger ", i), now)
		require.Equal(t, i >= mostPeers-1, r == p.rest, i)
	}
	require.Len(t, p.all, mostPeers)
	require.Equal(t, mostPeers, p.order.Len())
	require.Same(t, known, p.of("known", now))
	require.Same(t, p.rest, p.of("one more", now.Add(p.idle-1)))
	p.of("known", now.Add(p.idle-1))
	require.NotSame(t, p.rest, p.of("one more", now.Add(p.idle)), "the other rates are full again")
	require.Len(t, p.all, 2)
	require.Same(t, known, p.of("known", now.Add(p.idle)), "it has not")
}

func TestRatePerPeer_Forgotten(t *testing.T) {
	p := newPeerRates(10, 5)
	now := time.Now()
	l := p.of("x", now)
	for l.AllowN(now, 1) {
	}
	require.Less(t, l.TokensAt(now.Add(p.idle-time.Millisecond)), 5.0)
	require.Equal(t, 5.0, l.TokensAt(now.Add(p.idle)))
}

func TestRatePerPeer_IdleBounds(t *testing.T) {
	require.Positive(t, newPeerRates(1e-300, 1).idle)
	require.Zero(t, newPeerRates(1e300, 1).idle)
}
