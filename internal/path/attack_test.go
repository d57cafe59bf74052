package path_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/path"
)

// TestAttack_ArbitraryMarks returns marks early, late, twice, in any order or never. The results
// stay within their bounds.
func TestAttack_ArbitraryMarks(t *testing.T) {
	for seed := range uint64(30) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var m path.Model
		var now time.Duration = 1
		var written uint64
		var sent []uint64
		for range 2000 {
			switch dice.IntN(6) {
			case 0:
				now += time.Duration(dice.Int64N(1 << dice.IntN(42)))
			case 1, 2:
				written += uint64(dice.Int64N(1 << dice.IntN(30)))
			case 3:
				if m.Room() {
					m.Departs(now, written, dice.IntN(2) == 0)
					sent = append(sent, written)
				}
			case 4:
				if len(sent) > 0 {
					m.Returns(now, sent[len(sent)-1-min(dice.IntN(20), len(sent)-1)])
				}
			case 5:
				m.Returns(now, written+uint64(dice.IntN(100)))
			}
			require.GreaterOrEqual(t, m.Limit(), 4<<10)
			require.LessOrEqual(t, m.Limit(), 1<<30)
			require.GreaterOrEqual(t, m.Part(), 4<<10)
			require.LessOrEqual(t, m.Part(), 64<<10)
			require.GreaterOrEqual(t, m.Spacing(), 0)
			require.GreaterOrEqual(t, m.Holds(), 0)
			require.LessOrEqual(t, m.Holds(), 1<<30)
			require.LessOrEqual(t, m.Read(), written)
			require.GreaterOrEqual(t, m.RoundTrip(), time.Duration(0))
			require.GreaterOrEqual(t, m.Rate(), 0.0)
			took, ahead := m.Waited(now)
			require.GreaterOrEqual(t, took, time.Duration(0))
			require.LessOrEqual(t, ahead, written)
		}
	}
}

// TestAttack_SlowPath has queues of half a minute. No mark returns before the round trip is old.
func TestAttack_SlowPath(t *testing.T) {
	for _, trip := range []time.Duration{2 * time.Second, 4 * time.Second, 10 * time.Second} {
		t.Run(trip.String(), func(t *testing.T) {
			s := newSim(8000, trip)
			s.run(5 * time.Minute)
			for range 10 {
				s.run(time.Minute)
				require.InEpsilon(t, 2*s.delay, s.m.RoundTrip(), 0.5)
			}
			require.Greater(t, s.throughput(10*time.Minute), 0.7)
		})
	}
}
