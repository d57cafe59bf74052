package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedianInterval(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		n               int // the values are 1 to n
		low, high, sure float64
	}{
		{0, -inf, inf, 1},
		{5, -inf, inf, 1}, // lowest to highest holds the median in 30 of 32 cases only
		{6, 1, 6, 1 - 2.0/64},
		{8, 1, 8, 1 - 2.0/256},
		{9, 2, 8, 1 - 2*10.0/512},
		{10, 2, 9, 1 - 2*11.0/1024},
		{12, 3, 10, 1 - 2*79.0/4096},
		{20, 6, 15, 0.9586},
		{100, 40, 61, 0.9648},
		{mostRounds, 469, 532, 0.9537},
	} {
		values := make([]float64, c.n)
		for i, v := range rand.Perm(c.n) {
			values[i] = float64(v + 1)
		}
		unsorted := slices.Clone(values)
		low, high, sure := medianInterval(values)
		require.Equal(t, []float64{c.low, c.high}, []float64{low, high}, "of %d values", c.n)
		require.InDelta(t, c.sure, sure, 0.0001, "of %d values", c.n)
		require.Equal(t, unsorted, values, "the values stay in their order")
	}
}

// The interval covers the median as often as it claims.
func TestMedianInterval_Coverage(t *testing.T) {
	const tries = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	values, held := make([]float64, 10), 0
	for range tries {
		for i := range values {
			values[i] = random.ExpFloat64() // of a skewed distribution, with the median ln 2
		}
		if low, high, _ := medianInterval(values); low <= math.Ln2 && math.Ln2 <= high {
			held++
		}
	}
	require.InDelta(t, 0.9785, float64(held)/tries, 0.005)
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      verdict
	}{
		{1.01, 1.2, better},
		{1, 1.2, same},
		{0.5, 1, same},
		{1, 1, same},
		{0.98, 0.999, worse},
		{0.5, 0.97, worse}, // not all of it is below
		{0.5, 0.969, muchWorse},
		{0, 0, muchWorse},
		{math.Inf(-1), math.Inf(1), same},
	} {
		require.Equal(t, c.want, judge(c.low, c.high), fmt.Sprint(c))
	}
}

func TestCompareFigure(t *testing.T) {
	hundred := []float64{100, 100, 100, 100, 100, 100, 100, 100, 100, 100}
	times := func(list []float64, f float64) []float64 {
		list = slices.Clone(list)
		for i := range list {
			list[i] *= f
		}
		return list
	}
	drifting := []float64{100, 90, 80, 70, 60, 50, 40, 30, 20, 10}
	outliers := []float64{10, 100, 100, 100, 100, 100, 100, 100, 100, 1000}
	for _, c := range []struct {
		what     string
		old, new []float64
		less     bool
		blur     float64
		want     comparison
	}{
		{"the same", hundred, hundred, false, 0, comparison{100, 100, 1, 1, 1, same}},
		{"more is better", hundred, times(hundred, 1.25), false, 0, comparison{100, 125, 1.25, 1.25, 1.25, better}},
		{"less is worse", hundred, times(hundred, 0.5), false, 0, comparison{100, 50, 0.5, 0.5, 0.5, muchWorse}},
		{"a latency that grew", hundred, times(hundred, 2), true, 0, comparison{100, 200, 0.5, 0.5, 0.5, muchWorse}},
		{"a latency that fell", hundred, times(hundred, 0.5), true, 0, comparison{100, 50, 2, 2, 2, better}},
		{"a little worse", times(hundred, 100), times(hundred, 98), false, 0, comparison{10_000, 9800, 0.98, 0.98, 0.98, worse}},
		{"a machine that slows down slows both", drifting, times(drifting, 1.5), false, 0, comparison{55, 82.5, 1.5, 1.5, 1.5, better}},
		{"one outlier on each side", hundred, outliers, false, 0, comparison{100, 100, 1, 1, 1, same}},
		{"two rounds of ten that were not worse", hundred, []float64{100, 100, 50, 50, 50, 50, 50, 50, 50, 50}, false, 0, comparison{100, 50, 0.5, 0.5, 1, same}},
		{"one round of ten that was not worse", hundred, []float64{100, 50, 50, 50, 50, 50, 50, 50, 50, 50}, false, 0, comparison{100, 50, 0.5, 0.5, 0.5, muchWorse}},
		{"less than the table shows", times(hundred, 100), times(hundred, 99.96), false, 0, comparison{10_000, 9996, 1, 1, 1, same}},
		{"both allocate nothing", times(hundred, 0), times(hundred, 0), true, 0, comparison{0, 0, 1, 1, 1, same}},
		{"next to nothing", times(hundred, 0), times(hundred, 0.0001), true, 0.02, comparison{0, 0.01, 1, 1, 1, same}},
		{"nothing became something", times(hundred, 0), times(hundred, 0.01), true, 0.02, comparison{0, 1, 0, 0, 0, muchWorse}},
		{"something became nothing", times(hundred, 0.01), times(hundred, 0), true, 0.02, comparison{1, 0, math.Inf(1), math.Inf(1), math.Inf(1), better}},
		{"too few rounds", hundred[:5], times(hundred[:5], 0.5), false, 0, comparison{100, 50, 0.5, math.Inf(-1), math.Inf(1), same}},
	} {
		require.Equal(t, c.want, compareFigure(c.old, c.new, c.less, c.blur), c.what)
	}
}
