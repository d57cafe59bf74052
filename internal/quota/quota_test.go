package quota

import (
	"math"
	"net"
	"testing"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/stretchr/testify/require"
)

// TestBudget_NineEighths admits a peer that holds nothing up to nine eighths of the budget, and a
// peer above its share only up to the budget.
func TestBudget_NineEighths(t *testing.T) {
	const most = 800
	greedy, other := NameOf("greedy", "", nil), NameOf("other", "", nil)
	for _, c := range []struct {
		held            int
		greedy, another bool // admitted
	}{
		{most, true, true},
		{most + 1, false, true},
		{most + most/8, false, true},
		{most + most/8 + 1, false, false},
	} {
		var all Owners
		all.Init(most)
		all.Join(greedy, "greedy").Tally.Add(c.held)
		for name, in := range map[Name]bool{greedy: c.greedy, other: c.another} {
			if err := all.RejectSession(name); in {
				require.NoError(t, err, "%d bytes are held", c.held)
			} else {
				require.ErrorIs(t, err, codec.ErrOverloaded, "%d bytes are held", c.held)
			}
		}
	}
}

// TestOwner_ProofOrAddress checks that owners are distinguished by their proof, or else by their
// address.
func TestOwner_ProofOrAddress(t *testing.T) {
	at := func(addr string) Name {
		a, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		return NameOf("", "", a)
	}
	unix := NameOf("", "", &net.UnixAddr{Name: "@"})
	here, elsewhere := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9)}, &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5)}
	for _, c := range []struct {
		name   string
		a, b   Name
		same   bool
		proved bool // of the owner of a
	}{
		{"two ports of one address", at("192.0.2.1:1000"), at("192.0.2.1:2000"), true, false},
		{"two addresses", at("192.0.2.1:1000"), at("192.0.2.2:1000"), false, false},
		{"two addresses of a /64", at("[2001:db8::1]:1000"), at("[2001:db8::ffff:2]:1000"), true, false},
		{"two /64", at("[2001:db8:0:1::1]:1000"), at("[2001:db8:0:2::1]:1000"), false, false},
		{"an address written as one of version 6", at("[::ffff:192.0.2.1]:1000"), at("192.0.2.1:1000"), true, false},
		{"two that cross no network", unix, unix, true, false},
		{"two link-local addresses of one interface", at("[fe80::1]:1"), at("[fe80::2]:1"), true, false},
		{"no address", NameOf("", "", nil), NameOf("", "", nil), true, false},
		{"a key and an address", NameOf("", "k", here), NameOf("", "", here), false, true},
		{"a key at two addresses", NameOf("", "k", here), NameOf("", "k", elsewhere), true, true},
		{"a subject beside a key", NameOf("alice", "k", here), NameOf("", "k", here), false, true},
		{"a subject at two addresses", NameOf("alice", "k", here), NameOf("alice", "", elsewhere), true, true},
		{"a subject named as a key", NameOf("k", "", here), NameOf("", "k", here), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all Owners
			a, b := all.Join(c.a, ""), all.Join(c.b, "")
			require.Equal(t, c.same, a == b)
			require.Equal(t, c.proved, a.Proved())
			all.Release(a)
			if c.same {
				require.Same(t, b, all.Join(c.a, ""), "as long as one session knows it")
				all.Release(b)
			}
			all.Release(b)
			require.Empty(t, all.all)
		})
	}
}

// TestBudget_FairShare compares fair shares with a table (max-min fairness).
func TestBudget_FairShare(t *testing.T) {
	for _, c := range []struct {
		held        []int
		total, want int
	}{
		{nil, 100, math.MaxInt},
		{[]int{10, 20}, 100, math.MaxInt},
		{[]int{200}, 100, 100},
		{[]int{200, 300}, 100, 50},
		{[]int{300, 10, 0}, 100, 90},
		{[]int{40, 30, 200, 10}, 100, 30},
		{[]int{0, 0, 0, 101}, 100, 100},
	} {
		require.Equal(t, c.want, fairShare(c.held, c.total), "%v of %d", c.held, c.total)
	}
}

// TestReserve_Threshold checks that a remainder is left, as large as the places of one owner.
func TestReserve_Threshold(t *testing.T) {
	var all Owners
	r := Slots{Max: 100, Owners: &all}
	a := all.Join(NameOf("a", "", nil), "a")
	b := all.Join(NameOf("b", "", nil), "b")
	fill := func(w *Owner) (n int) {
		for r.Acquire(w) {
			n++
		}
		return n
	}
	require.Equal(t, 50, fill(a))
	require.Equal(t, 25, fill(b))
	require.Zero(t, fill(a))
	for range 50 {
		r.Release(a)
	}
	require.Equal(t, 25, fill(b), "as many as are left")
	require.EqualValues(t, 50, r.InUse())
	require.EqualValues(t, 50, b.slots.Load())
	all.Release(b)
	require.Same(t, b, all.Join(NameOf("b", "", nil), "b"), "who has places is not forgotten with its last session")
	all.Release(b)
	for range 50 {
		r.Release(b)
	}
	require.Len(t, all.all, 1)
}

// TestBudget_Default checks that the default is a part of the memory.
func TestBudget_Default(t *testing.T) {
	require.Positive(t, DefaultBudget())
	if m := machineMemory(); m > 0 {
		require.LessOrEqual(t, int64(DefaultBudget()), m/4)
	}
}
