package flow_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// unary is the cost of a call with parameters of 64 bytes.
const unary = 64 + flow.LeastOverhead

// newOpens returns an Opens with its share of p.
func newOpens(p flow.Plan) *flow.Opens {
	o := flow.NewOpens(&p)
	return &o
}

func TestOpens_HoldsCreditBack(t *testing.T) {
	p := defaults(t)
	o := newOpens(p)
	calls := 0
	for ; ; calls++ {
		require.True(t, o.Arrive(unary))
		o.Return(unary)
		if total := o.Grant(true); total > 0 {
			require.EqualValues(t, o.Received()+uint64(p.Opens), total, "then all is granted at once")
			break
		}
		require.Equal(t, p.Opens-(calls+1)*unary, o.Promised(), "returned cost is not promised any more")
		require.GreaterOrEqual(t, o.Promised(), p.LargestOpen()+p.Opens/8, "no call has to wait")
	}
	require.Equal(t, (p.Opens-p.LargestOpen()-p.Opens/8)/unary, calls, "with one more, the largest would have too little")
	require.InDelta(t, 2_274, calls, 10)
}

func TestOpens_CreditUnderLoad(t *testing.T) {
	p := defaults(t)
	o := newOpens(p)
	const calls, wait = 100_000, 4000
	credits := 0
	for i := range calls {
		require.True(t, o.Arrive(unary))
		if i >= wait { // other Opens wait here, so that a later grant is certain
			o.Return(unary)
		}
		if total := o.Grant(false); total > 0 {
			credits++
			require.Equal(t, p.Opens, o.Promised())
		}
		require.LessOrEqual(t, o.Promised(), p.Opens)
	}
	each := (p.Opens/2 + unary - 1) / unary
	require.Equal(t, (calls-wait)/each, credits)
	require.InDelta(t, 5_467, each, 10)
	require.Equal(t, wait*unary, o.Held())
}

func TestOpens_CreditIsDue(t *testing.T) {
	p := defaults(t)
	reserve := p.LargestOpen() + p.Opens/8
	for _, c := range []struct {
		name               string
		received, returned int
		idle, want         bool
	}{
		{"nothing has come", 0, 0, true, false},
		{"nothing has been returned", p.Opens, 0, true, false},
		{"the largest and an eighth are left", p.Opens - reserve, p.Opens - reserve, true, false},
		{"a byte less is left", p.Opens - reserve + 1, p.Opens - reserve + 1, true, true},
		{"a byte less is left, and an Open waits", p.Opens - reserve + 1, p.Opens - reserve + 1, false, false},
		{"little is left and owed", p.Opens, 1, true, true},
		{"nothing is left, and little is owed while an Open waits", p.Opens, p.Opens/2 - 1, false, false},
		{"half is owed", p.Opens / 2, p.Opens / 2, false, true},
		{"half is owed, and all has come", p.Opens, p.Opens / 2, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOpens(p)
			require.True(t, o.Arrive(uint64(c.received)))
			o.Return(uint64(c.returned))
			require.Equal(t, c.received-c.returned, o.Held())
			var want uint64
			if c.want {
				want = uint64(c.returned + p.Opens)
			}
			require.Equal(t, want, o.Grant(c.idle))
			require.Zero(t, o.Grant(c.idle), "it is granted once")
		})
	}
}

func TestOpens_RejectUnpromised(t *testing.T) {
	p := defaults(t)
	o := newOpens(p)
	require.True(t, o.Arrive(uint64(p.Opens)-1))
	require.False(t, o.Arrive(2))
	require.True(t, o.Arrive(1))
	require.False(t, o.Arrive(1))
	require.EqualValues(t, p.Opens, o.Received())
	o.Return(uint64(p.Opens))
	require.False(t, o.Arrive(1), "room that is free is not promised as long as the peer does not know")
	require.EqualValues(t, 2*p.Opens, o.Grant(true))
	require.True(t, o.Arrive(uint64(p.Opens)))
}

func TestOpens_ZeroIsUnlimited(t *testing.T) {
	var o flow.Opens
	for range 100 {
		require.True(t, o.Arrive(1<<20))
	}
	o.Return(1 << 20)
	require.Zero(t, o.Grant(true), "not counted")
	require.Zero(t, o.Room())
	require.Equal(t, 99<<20, o.Held())
	require.Equal(t, 99<<20, o.Promised())
}

// openPeer models the peer that makes calls. Like a session, it keeps the last eighth of its credit
// for urgent calls.
type openPeer struct{ limit, used, urgent uint64 }

// TestOpens_Model sends, takes and grants at random. After each step it checks the granted total
// and that the peer can continue.
func TestOpens_Model(t *testing.T) {
	const each = 2000
	for seed := range 500 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 4))
		soft := limits.Amount{Bytes: 64*kib + upTo(rnd, 32*mib)}
		if rnd.IntN(3) == 0 {
			soft.Messages = 64 + upTo(rnd, 1000)
		}
		plan := newPlan(t, soft, rnd.IntN(soft.Bytes/8), 1+rnd.IntN(3))
		p := &plan
		o := newOpens(plan)
		largest := uint64(p.Largest + p.Overhead + p.Window)
		peer := openPeer{limit: uint64(p.Opens), urgent: min(uint64(p.Opens/8), uint64(p.Opens)-largest)}
		var waiting []uint64 // the costs of Opens that wait
		var held uint64      // their sum
		least := uint64(p.Overhead)
		for step := range each {
			last := ""
			grant := func() {
				idle, before, returned := held == 0, peer.limit, peer.used-held
				total := o.Grant(idle)
				owed := int(returned) + o.Room() - int(before)
				due := owed > 0 && (owed >= o.Room()/2 || idle && before-peer.used < uint64(p.LargestOpen()))
				early := idle && before-peer.used < uint64(p.LargestOpen())+peer.urgent
				switch {
				case total == 0 && due:
					t.Fatalf("seed %d, step %d: no Credit, and %d of %d bytes are owed, %d are left", seed, step, owed, o.Room(), before-peer.used)
				case total > 0 && !due && !early:
					t.Fatalf("seed %d, step %d: a Credit, and %d of %d bytes are owed, %d are left", seed, step, owed, o.Room(), before-peer.used)
				case total > 0 && (total != returned+uint64(o.Room()) || total <= before):
					t.Fatalf("seed %d, step %d: %d bytes were granted after %d, and %d have been returned", seed, step, total, before, returned)
				}
				peer.limit = max(peer.limit, total)
			}
			switch n := rnd.IntN(100); {
			case n < 55: // an Open, of any size and priority
				last = "an Open"
				cost := least + rnd.Uint64N(largest-least+1)
				if rnd.IntN(4) > 0 {
					cost = min(largest, least+rnd.Uint64N(200))
				}
				left, kept := peer.limit-peer.used, peer.urgent
				if rnd.IntN(4) == 0 {
					kept = 0
				}
				if cost+kept > left {
					if left < cost && o.Arrive(cost) {
						t.Fatalf("seed %d, step %d: %d bytes were taken, and %d were granted", seed, step, cost, left)
					}
					break
				}
				if !o.Arrive(cost) {
					t.Fatalf("seed %d, step %d: %d bytes were not taken, and %d were granted", seed, step, cost, left)
				}
				peer.used += cost
				held += cost
				waiting = append(waiting, cost)
			case n < 99: // a worker takes one, or a part of what it costs is returned
				if len(waiting) == 0 {
					break
				}
				last = "a Return"
				i := rnd.IntN(len(waiting))
				part := waiting[i]
				if rnd.IntN(4) == 0 {
					part = rnd.Uint64N(part + 1)
				}
				waiting[i] -= part
				held -= part
				if waiting[i] == 0 {
					waiting[i] = waiting[len(waiting)-1]
					waiting = waiting[:len(waiting)-1]
				}
				o.Return(part)
				grant()
			}
			switch left := peer.limit - peer.used; {
			case o.Promised() > p.Opens:
				t.Fatalf("seed %d, step %d, after %s: %d bytes are promised, and there is room for %d", seed, step, last, o.Promised(), p.Opens)
			case o.Held() != int(held) || o.Received() != peer.used || o.Promised() != int(peer.limit-peer.used+held):
				t.Fatalf("seed %d, step %d, after %s: %d bytes are said to be held and %d promised", seed, step, last, o.Held(), o.Promised())
			case held == 0 && left < largest+peer.urgent:
				t.Fatalf("seed %d, step %d, after %s: %d bytes are left for the peer, nothing waits, and the largest call costs %d and %d are kept", seed, step, last, left, largest, peer.urgent)
			}
		}
	}
}
