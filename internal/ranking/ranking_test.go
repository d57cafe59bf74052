package ranking_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/ranking"
)

type element struct {
	rank  int
	place ranking.Place
}

func newRanking() ranking.Ranking[element] {
	return ranking.New(func(a, b *element) bool { return a.rank > b.rank }, func(e *element) *ranking.Place { return &e.place })
}

// TestFirst_IsAheadOfAll compares with a linear search.
func TestFirst_IsAheadOfAll(t *testing.T) {
	r := newRanking()
	all := make([]element, 40)
	for range 20_000 {
		e := &all[rand.N(len(all))]
		if e.rank = rand.N(20); e.rank < 5 {
			e.rank = 0
			r.Remove(e)
		} else {
			r.Put(e)
		}
		n, most := 0, 0
		for i := range all {
			if all[i].rank > 0 {
				n++
			}
			most = max(most, all[i].rank)
			require.Equal(t, all[i].rank > 0, all[i].place > 0)
		}
		require.Equal(t, n, r.Len())
		if n > 0 {
			require.Equal(t, most, r.First().rank)
		}
	}
}

func TestRemove_Absent(t *testing.T) {
	r := newRanking()
	r.Remove(&element{rank: 1})
	require.Zero(t, r.Len())
}

func BenchmarkPut(b *testing.B) {
	r := newRanking()
	all := make([]element, 10_000)
	for i := range all {
		all[i].rank = rand.N(100)
		r.Put(&all[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := &all[i%len(all)]
		e.rank = rand.N(100)
		r.Put(e)
	}
}
