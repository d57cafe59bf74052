package flow_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/limits"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// newPlan is NewPlan for valid numbers, without extra credit: all of the elastic room is free.
func newPlan(t testing.TB, soft limits.Amount, largest, workers int) flow.Plan {
	p, err := flow.NewPlan(soft, largest, workers)
	require.NoError(t, err)
	require.Equal(t, min(p.Elastic/8, 1<<30), p.Extra)
	p.Extra = 0
	return p
}

// defaults returns the plan of a session without limits set by its user.
func defaults(t testing.TB) flow.Plan {
	return newPlan(t, limits.Amount{Messages: 65_536, Bytes: 32 * mib}, 4*mib, 1024)
}

func TestPlan_Defaults(t *testing.T) {
	p := defaults(t)
	require.Equal(t, 32*mib, p.Room)
	require.Equal(t, 512, p.Overhead)
	require.Equal(t, 4096, p.Window)
	require.Equal(t, p.LargestOpen()+2*mib, p.Opens)
	require.Equal(t, p.LargestOpen(), p.Nested)
	require.Equal(t, mib, p.NestedOwn)
	require.Equal(t, 32*1024, p.NestedCalls)
	require.Equal(t, 4*mib+512, p.Large)
	require.Equal(t, 1024, p.Workers)
	require.Equal(t, 64, p.Callers)
	require.InDelta(t, 12.75*mib, p.Elastic, 0.02*mib)
	require.Equal(t, 4*mib+kib+512+4096, p.LargestOpen())
}

func TestPlan_FollowsLimits(t *testing.T) {
	for _, c := range []struct {
		name             string
		soft             limits.Amount
		largest, workers int

		room, overhead, window, callers int
	}{
		{"no limit at all", limits.Amount{}, 4 * mib, 1024, 32 * mib, 512, 4096, 64},
		{"no limit, and large messages", limits.Amount{}, 10_000_000, 1024, 80_000_000, 512, 9765, 64},
		{"no limit of bytes", limits.Amount{Messages: 16_384}, 4 * mib, 1024, 32 * mib, 2048, 4096, 64},
		{"no limit of messages", limits.Amount{Bytes: 32 * mib}, 4 * mib, 1024, 32 * mib, 512, 4096, 64},
		{"no limit of messages, and a lot of room", limits.Amount{Bytes: 100_000_001}, 4 * mib, 1024, 100_000_001, 512, 12_207, 64},
		{"one worker has a window that is not too large", limits.Amount{Bytes: 32 * mib}, 4 * mib, 1, 32 * mib, 512, 512 + 16*kib, 64},
		{"no workers", limits.Amount{Bytes: 32 * mib}, 4 * mib, 0, 32 * mib, 512, 512 + 16*kib, 64},
		{"as many workers as there are windows", limits.Amount{Bytes: 32 * mib}, 4 * mib, 2730, 32 * mib, 512, 512 + kib, 64},
		{"few messages make each of them cost more", limits.Amount{Messages: 1000, Bytes: 32 * mib}, 4 * mib, 100, 32 * mib, 33_555, 41_943, 50},
		{"many messages cost no less than the least", limits.Amount{Messages: 1 << 20, Bytes: 32 * mib}, 4 * mib, 100, 32 * mib, 512, 512 + 16*kib, 64},
		{"tiny limits promise with the least", limits.Amount{Messages: 1, Bytes: 1}, 8 * kib, 1, 64 * kib, 1024, 2 * kib, 2},
		{"tiny limits, and several workers", limits.Amount{Messages: 10, Bytes: 1000}, kib, 4, 64 * kib, 1024, 2 * kib, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlan(t, c.soft, c.largest, c.workers)
			require.Equal(t, []int{c.room, c.overhead, c.window, c.callers}, []int{p.Room, p.Overhead, p.Window, p.Callers},
				"room, overhead, window, callers")
			checkPlan(t, p)
		})
	}
}

// checkPlan checks the invariants of a plan that NewPlan accepts.
func checkPlan(t testing.TB, p flow.Plan) {
	sum := p.Opens + p.Nested + p.NestedOwn + p.Large + (p.Workers+p.Callers)*p.Window + p.Elastic
	switch {
	case sum != p.Room:
		t.Fatalf("the shares are %d bytes and the room %d: %+v", sum, p.Room, p)
	case p.Opens < p.LargestOpen()+p.Room/16 || p.Opens < p.Room/8:
		t.Fatalf("the largest Open, of %d bytes, does not fit beside others, or Opens have no eighth: %+v", p.LargestOpen(), p)
	case p.Nested < p.LargestOpen() || p.Nested < p.Room/8 || p.NestedOwn != p.Room/32:
		t.Fatalf("the largest nested call does not fit, or nested calls have no eighth: %+v", p)
	case p.Elastic < p.Room/8:
		t.Fatalf("less than an eighth is spare: %+v", p)
	case p.Workers*p.Window > p.Room/8:
		t.Fatalf("workers have %d bytes, which are more than an eighth: %+v", p.Workers*p.Window, p)
	case p.Window < p.Overhead+kib || p.Window > p.Overhead+16*kib:
		t.Fatalf("a window does not suit the overhead: %+v", p)
	case p.Callers < 1 || p.Callers > 64:
		t.Fatalf("there are too many guaranteed windows of callers, or none: %+v", p)
	case p.Large != p.Largest+p.Overhead || 8*p.Largest > p.Room:
		t.Fatalf("the largest message does not fit: %+v", p)
	case p.NestedCalls < 256 || p.NestedCalls < 32*p.Workers:
		t.Fatalf("too few calls may run within calls: %+v", p)
	case p.Overhead < flow.LeastOverhead:
		t.Fatalf("messages cost too little: %+v", p)
	}
}

// upTo returns a number below n with a random order of magnitude.
func upTo(rnd *rand.Rand, n int) int { return rnd.IntN(1 + rnd.IntN(1+rnd.IntN(n))) }

var number = regexp.MustCompile(`\d+`)

// named returns the numbers in an error.
func named(t testing.TB, err error) (numbers []int) {
	for _, s := range number.FindAllString(err.Error(), -1) {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	return numbers
}

// TestPlan_SharesAddUp draws limits at random. For each of them NewPlan returns a plan that adds
// up, or an error that names numbers that do.
func TestPlan_SharesAddUp(t *testing.T) {
	plans := 50_000
	if race.Enabled { // they have one goroutine
		plans = 2_000
	}
	const narrow = 3 * (64/bits.UintSize - 1) // eight times the largest overflows 32 bits
	rnd := rand.New(rand.NewPCG(1, 2))
	var accepted, tooLarge, tooMany int
	for range plans {
		soft := limits.Amount{Messages: upTo(rnd, limits.MaxMessages), Bytes: upTo(rnd, 1<<30>>narrow)}
		if rnd.IntN(8) == 0 {
			soft.Messages = 0
		}
		if rnd.IntN(8) == 0 {
			soft.Bytes = 0
		}
		room := max(soft.Bytes, flow.LeastRoom)
		largest, workers := rnd.IntN(room/8+1), upTo(rnd, 1<<20>>narrow)
		if rnd.IntN(4) == 0 {
			largest += upTo(rnd, room)
		}
		p, err := flow.NewPlan(soft, largest, workers)
		for err != nil {
			n := named(t, err)
			switch what := fmt.Sprintf("%v, %d bytes at most, %d workers: %v", soft, largest, workers, err); {
			case largest > p.Room/8:
				tooLarge++
				require.Len(t, n, 3, what)
				require.Equal(t, []int{largest, p.Room}, []int{n[0], n[2]}, what)
				soft.Bytes = n[1]
				require.LessOrEqual(t, largest, soft.Bytes/8, what)
			default:
				tooMany++
				require.Equal(t, []int{workers, p.Window}, n[:2], what)
				most := n[len(n)-1]
				checkPlan(t, newPlan(t, soft, largest, most))
				_, err := flow.NewPlan(soft, largest, most+1)
				require.Error(t, err, what)
				soft.Bytes = n[len(n)-2]
				if soft.Messages > 0 {
					soft.Messages = n[2]
				}
				checkPlan(t, newPlan(t, soft, largest, workers))
			}
			p, err = flow.NewPlan(soft, largest, workers)
		}
		checkPlan(t, p)
		accepted++
	}
	require.Equal(t, plans, accepted)
	require.Greater(t, tooLarge, plans/20)
	require.Greater(t, tooMany, plans/20)
}

func TestPlan_ErrorNamesRemedy(t *testing.T) {
	for _, c := range []struct {
		name             string
		soft             limits.Amount
		largest, workers int
		want             string
	}{
		{"messages that are too large", limits.Amount{Bytes: 32 * mib}, 4*mib + 1, 1024,
			"messages of 4194305 bytes need a soft limit of 33554440 bytes, eight times as much, not 33554432"},
		{"tiny limits", limits.Amount{Bytes: 1000}, 10_000, 1, "messages of 10000 bytes need a soft limit of 80000 bytes, eight times as much, not 65536"},
		{"workers that are too many", limits.Amount{Messages: 65_536, Bytes: 32 * mib}, 4 * mib, 2731,
			"2731 workers need windows of 1536 bytes each: a soft limit of 65544 messages, 33558528 bytes, or at most 2730 workers"},
		{"workers that are too many, and no limit of messages", limits.Amount{Bytes: 32 * mib}, 4 * mib, 2731,
			"2731 workers need windows of 1536 bytes each: a soft limit of 33558528 bytes, or at most 2730 workers"},
		{"messages that are too few", limits.Amount{Messages: 1000, Bytes: 32 * mib}, 4 * mib, 1024,
			"1024 workers need windows of 34579 bytes each: a soft limit of 10923 messages, 33554432 bytes, or at most 121 workers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := flow.NewPlan(c.soft, c.largest, c.workers)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestMostWorkers_MatchesNewPlan(t *testing.T) {
	for _, soft := range []limits.Amount{{Messages: 65_536, Bytes: 32 * mib}, {Messages: 64, Bytes: 64 * kib}, {Messages: 1, Bytes: 1}, {Messages: 1000, Bytes: 32 * mib}} {
		most := flow.MostWorkers(soft.Bytes, soft.Messages)
		newPlan(t, soft, kib, most)
		_, err := flow.NewPlan(soft, kib, most+1)
		require.Error(t, err, "%v has room for %d workers", soft, most)
	}
	require.Equal(t, 2730, flow.MostWorkers(32*mib, 65_536))
}
