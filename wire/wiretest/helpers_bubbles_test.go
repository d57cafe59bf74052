package wiretest

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/asterisque-go/asterisque/wire"
)

// spins has the checks that poll without a wait, so that the clock of a bubble never advances.
var spins = map[string]bool{
	"TryWriteBatch never waits":               true,
	"Receiving is the memory of half a frame": true,
}

// RunInBubbles is Run for pairs neither end of which waits for an event outside of the process.
// Each check runs in a synctest bubble, where waiting takes no time, except for the checks that
// spin or are in outside.
func RunInBubbles(t *testing.T, pair func(t *testing.T) (a, b wire.Wire), outside ...string) {
	hung := false
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			over := func(t *testing.T) { c.over(t, pair, usual, &hung) }
			if spins[c.name] || slices.Contains(outside, c.name) {
				over(t)
				return
			}
			synctest.Test(t, over)
		})
	}
}
