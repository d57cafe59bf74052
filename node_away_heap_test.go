package asterisque

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheFirstOfThoseAwayHasMost compares with looking at all.
func TestTheFirstOfThoseAwayHasMost(t *testing.T) {
	for _, m := range []*mostAway{{}, {inBytes: true}} {
		owners := make([]ownersAway, 40)
		for range 5000 {
			of := &owners[rand.N(len(owners))]
			of.sessions, of.bytes = rand.N(4), rand.N(1000)
			m.fix(of)
			n, sessions, bytes := 0, 0, 0
			for i := range owners {
				if o := &owners[i]; o.sessions > 0 {
					n, sessions, bytes = n+1, max(sessions, o.sessions), max(bytes, o.bytes)
				}
			}
			require.Len(t, m.all, n)
			switch {
			case n == 0:
			case m.inBytes:
				require.Equal(t, bytes, m.all[0].bytes)
			default:
				require.Equal(t, sessions, m.all[0].sessions)
			}
		}
	}
}
