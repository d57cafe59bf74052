package asterisque

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAways_FirstHasMost compares the first owner of the ranking with a search of all owners.
func TestAways_FirstHasMost(t *testing.T) {
	var w aways
	w.init(amountAway{}, amountAway{})
	owners := make([]ownersAway, 40)
	for range 5000 {
		of := &owners[rand.N(len(owners))]
		of.sessions, of.bytes = rand.N(4), rand.N(1000)
		w.rankLocked(of)
		n, sessions, bytes := 0, 0, 0
		for i := range owners {
			if o := &owners[i]; o.sessions > 0 {
				n, sessions, bytes = n+1, max(sessions, o.sessions), max(bytes, o.bytes)
			}
		}
		require.Equal(t, n, w.bySessions.Len())
		require.Equal(t, n, w.byBytes.Len())
		if n > 0 {
			require.Equal(t, bytes, w.byBytes.First().bytes)
			require.Equal(t, sessions, w.bySessions.First().sessions)
		}
	}
}

// TestAways_Quarter checks that suspended sessions have a quarter of the node's bounds, and those
// of one peer an eighth of the bytes.
func TestAways_Quarter(t *testing.T) {
	n := NewNode(WithLimits(Limits{Budget: 80 << 20}), WithAdmission(Admission{Sessions: 41, PerAddress: 7}))
	defer n.Close()
	require.Equal(t, amountAway{sessions: 11, bytes: 20 << 20}, n.aways.most, "rounded up")
	require.Equal(t, amountAway{sessions: 7, bytes: 10 << 20}, n.aways.mostOfOwner)
}
