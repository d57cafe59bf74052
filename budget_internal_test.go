package asterisque

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// TestBudget_NineEighths admits a peer that holds nothing up to nine eighths of the budget, and a
// peer above its share only up to the budget.
func TestBudget_NineEighths(t *testing.T) {
	const most = 800
	peer := func(ip byte) *Peer { return &Peer{RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, ip)}} }
	for _, c := range []struct {
		held            int
		greedy, another bool // admitted
	}{
		{most, true, true},
		{most + 1, false, true},
		{most + most/8, false, true},
		{most + most/8 + 1, false, false},
	} {
		var all owners
		all.total = limits.NewTally(most)
		b := budget{Tally: all.total, owners: &all}
		all.join(peer(1)).tally.Add(c.held)
		for p, in := range map[*Peer]bool{peer(1): c.greedy, peer(2): c.another} {
			if err := b.refusesSession(p); in {
				require.NoError(t, err, "%d bytes are held", c.held)
			} else {
				require.ErrorIs(t, err, codec.ErrOverloaded, "%d bytes are held", c.held)
			}
		}
	}
}
