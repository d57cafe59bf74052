package pool

import (
	"cmp"
	"slices"
)

// Rendezvous hashing, also called highest random weight (Thaler and Ravishankar, 1998): every pair
// of a key and a server has a weight that looks random and is the same in every program. The key
// belongs to the server with the highest weight. When a server leaves, only its keys move, evenly,
// to all remaining servers. A new server takes its share of the keys and moves no other key. There
// is no state, and the order of the servers has no effect.

// rendezvous returns the index of the id that a key belongs to, or -1 without ids.
func rendezvous(key string, ids []string) int {
	best, highest := -1, uint64(0)
	k := hash(key)
	for i, id := range ids {
		if w := weight(k, id); best < 0 || w > highest {
			best, highest = i, w
		}
	}
	return best
}

// subset returns the indices of the n ids that a client belongs to, by descending weight, or all if
// there are less. Many clients with ids of their own spread evenly. When one of the n servers
// leaves, one other server replaces it at the end; the others stay in place.
func subset(client string, ids []string, n int) []int {
	k := hash(client)
	weights := make([]uint64, len(ids))
	all := make([]int, len(ids))
	for i, id := range ids {
		all[i], weights[i] = i, weight(k, id)
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return all[:min(max(n, 0), len(all))]
}

// weight returns the weight of a server for the hash of a key.
func weight(key uint64, id string) uint64 {
	return mix(key ^ hash(id))
}

// hash is FNV-1a with 64 bits, mixed. hash/maphash differs from program to program, so clients
// would not agree. hash/fnv gives the same result, but allocates.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the last step of SplitMix64: each bit of x changes each bit of the result with even odds.
// FNV alone lacks this property: its high bits, which decide here, hardly depend on the last bytes,
// and the addresses of servers differ in these.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
