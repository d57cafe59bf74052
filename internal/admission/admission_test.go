package admission

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/stretchr/testify/require"
)

func at(address string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)) }

// requireNothing checks that the admission has neither places nor sessions.
func requireNothing(t *testing.T, a *Control) {
	t.Helper()
	require.Equal(t, make([]int, 4), []int{a.open, a.carried, len(a.hosts), a.crowds.Len()}, "places, sessions, addresses, and those with places")
}

// model is the expected content of an admission, in the order of arrival.
type model struct {
	places []*Slot
	most   int
}

func (m *model) of(h *peerHost) (n int) {
	for _, p := range m.places {
		if p.host == h {
			n++
		}
	}
	return n
}

// add adds p, and returns the entry that is lost: the oldest of the address with most entries, or
// the oldest of all such addresses.
func (m *model) add(p *Slot) (lost *Slot) {
	if m.places = append(m.places, p); len(m.places) <= m.most {
		return nil
	}
	most := 0
	for _, p := range m.places {
		if n := m.of(p.host); n > most {
			lost, most = p, n
		}
	}
	m.remove(lost)
	return lost
}

func (m *model) remove(p *Slot) bool {
	i := slices.Index(m.places, p)
	if i >= 0 {
		m.places = slices.Delete(m.places, i, i+1)
	}
	return i >= 0
}

// TestControl_AgreesWithModel compares lost places with a simple model.
func TestControl_AgreesWithModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := New(Limits{HalfOpen: 1 + random.IntN(12), Time: time.Hour})
		m := &model{most: a.limits.HalfOpen}
		var all []*Slot
		for range 300 {
			switch random.IntN(5) {
			case 0, 1, 2:
				p, refused := a.Enter(at(fmt.Sprintf("192.0.2.%d:1", random.IntN(6))), func() {})
				require.Nil(t, refused)
				all = append(all, p)
				if lost := m.add(p); lost != nil {
					require.Nil(t, lost.waits, "seed %d", seed)
				}
			case 3:
				if len(all) > 0 {
					p := all[random.IntN(len(all))]
					require.Equal(t, m.remove(p), p.Carry() == nil, "seed %d", seed)
				}
			default:
				if len(all) > 0 {
					p := all[random.IntN(len(all))]
					m.remove(p)
					p.Leave()
				}
			}
			require.Equal(t, len(m.places), a.open)
			for _, p := range m.places {
				require.NotNil(t, p.waits, "seed %d", seed)
			}
		}
		for _, p := range all {
			p.Leave()
		}
		requireNothing(t, a)
	}
}

// TestControl_OneHostAnAddress checks that an address has one host, even after the loss of its
// places.
func TestControl_OneHostAnAddress(t *testing.T) {
	a := New(Limits{HalfOpen: 1, PerAddress: 1, Time: time.Hour})
	enter := func(from string) *Slot {
		p, refused := a.Enter(at(from), func() {})
		require.Nil(t, refused)
		return p
	}
	first := enter("192.0.2.1:1")
	enter("192.0.2.9:1").Leave() // the first one is lost
	second := enter("192.0.2.1:2")
	enter("192.0.2.9:2").Leave()
	first.Leave()
	honest := enter("192.0.2.1:3")
	require.Nil(t, honest.Carry())
	second.Leave()
	_, refused := a.Enter(at("192.0.2.1:4"), func() {})
	require.ErrorContains(t, refused, "Admission.PerAddress")
	honest.Leave()
	requireNothing(t, a)
}

// TestControl_LostConnection checks that a lost connection admits no further Wire.
func TestControl_LostConnection(t *testing.T) {
	a := New(Limits{HalfOpen: 1, Time: time.Hour})
	connection, refused := a.Enter(at("192.0.2.1:1"), func() {})
	require.Nil(t, refused)
	other, refused := a.Enter(at("192.0.2.2:1"), func() {})
	require.Nil(t, refused)
	_, err := connection.Enter(func() {})
	require.ErrorIs(t, err, codec.ErrUnavailable)
	other.Leave()
	connection.Leave()
	requireNothing(t, a)
}
