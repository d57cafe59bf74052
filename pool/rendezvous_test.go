package pool

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRendezvous_ServerLeaves(t *testing.T) {
	before := serverIDs(10)
	after := slices.Delete(slices.Clone(before), 3, 4)
	moved := map[string]int{}
	for _, key := range numbered("key", 10_000) {
		was, is := before[rendezvous(key, before)], after[rendezvous(key, after)]
		if was == before[3] {
			moved[is]++
			continue
		}
		require.Equal(t, was, is, key)
	}
	require.Len(t, moved, 9, "they move to all remaining servers")
}

func TestRendezvous_ServerJoins(t *testing.T) {
	after := serverIDs(10)
	before := after[:9]
	for _, key := range numbered("key", 10_000) {
		if is := after[rendezvous(key, after)]; is != after[9] {
			require.Equal(t, before[rendezvous(key, before)], is, key)
		}
	}
}

func TestRendezvous_EvenShares(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		ids := serverIDs(n)
		shares := make([]int, n)
		for _, key := range numbered("user-", 10_000) {
			shares[rendezvous(key, ids)]++
		}
		for _, share := range shares {
			require.InEpsilon(t, 10_000/n, share, 0.1, "%d servers: %v", n, shares)
		}
	}
}

func TestRendezvous_AnyOrder(t *testing.T) {
	ids := serverIDs(7)
	other := slices.Clone(ids)
	slices.Reverse(other)
	for _, key := range numbered("key", 1000) {
		require.Equal(t, ids[rendezvous(key, ids)], other[rendezvous(key, other)])
		one, two := subset(key, ids, 3), subset(key, other, 3)
		for i := range one {
			require.Equal(t, ids[one[i]], other[two[i]])
		}
	}
}

func TestRendezvous_Constants(t *testing.T) {
	// If one of these changes, clients of different versions disagree about the server of a key.
	ids := serverIDs(5)
	require.Equal(t, 0, rendezvous("", ids))
	require.Equal(t, 4, rendezvous("a", ids))
	require.Equal(t, 4, rendezvous("orders/17", ids))
	require.Equal(t, []int{3, 1, 2, 4, 0}, subset("client", ids, 5))
}

func TestHash_FNV(t *testing.T) {
	for _, s := range []string{"", "a", "tls://10.0.0.7:5330", "\xff\x00"} {
		f := fnv.New64a()
		f.Write([]byte(s))
		require.Equal(t, mix(f.Sum64()), hash(s))
	}
}

func TestSubset_Order(t *testing.T) {
	ids := serverIDs(6)
	all := subset("client", ids, 6)
	require.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5}, all)
	require.Equal(t, rendezvous("client", ids), all[0])
	for n := range 7 {
		require.Equal(t, all[:n], subset("client", ids, n))
	}
	require.Equal(t, all, subset("client", ids, 100), "more than there are")
	require.Empty(t, subset("client", ids, -1))
	require.Empty(t, subset("client", nil, 3))
	require.Equal(t, -1, rendezvous("key", nil))
}

func TestSubset_ServerLeaves(t *testing.T) {
	before := serverIDs(20)
	after := slices.Delete(slices.Clone(before), 8, 9)
	for _, client := range numbered("client-", 1000) {
		was, is := named(subset(client, before, 5), before), named(subset(client, after, 5), after)
		if i := slices.Index(was, before[8]); i >= 0 {
			was, is = slices.Delete(was, i, i+1), is[:4]
		}
		require.Equal(t, was, is, client)
	}
}

func TestSubset_EvenSpread(t *testing.T) {
	ids := serverIDs(20)
	clients := make([]int, len(ids))
	for _, client := range numbered("client-", 1000) {
		for _, i := range subset(client, ids, 5) {
			clients[i]++
		}
	}
	for _, n := range clients {
		require.InEpsilon(t, 250, n, 0.25, "clients of each server: %v", clients)
	}
}

func TestRendezvous_SameID(t *testing.T) {
	require.Equal(t, 0, rendezvous("key", []string{"a", "a", "a"}))
	require.Equal(t, []int{0, 1}, subset("key", []string{"a", "a", "a"}, 2))
}

func BenchmarkRendezvous_TenServers(b *testing.B) {
	ids := serverIDs(10)
	b.ReportAllocs()
	for b.Loop() {
		rendezvous("orders/1234567", ids)
	}
}

func BenchmarkSubset_ThousandServers(b *testing.B) {
	ids := serverIDs(1000)
	b.ReportAllocs()
	for b.Loop() {
		subset("client-17", ids, 20)
	}
}

// serverIDs returns ids that differ as little as real ones.
func serverIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("tls://10.0.0.%d:5330", i+1)
	}
	return ids
}

func numbered(what string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(what, i)
	}
	return all
}

func named(indices []int, ids []string) (names []string) {
	for _, i := range indices {
		names = append(names, ids[i])
	}
	return names
}
