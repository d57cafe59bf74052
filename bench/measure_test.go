package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestPercentiles(t *testing.T) {
	l := newLatencies()
	for i, n := range rand.Perm(10_000) {
		l.record(i, time.Duration(n+1)*time.Microsecond) // 1 to 10,000 µs, by all callers
	}
	var r row
	r.setLatencies(l)
	require.InEpsilon(t, 5000, float64(r.P50), 0.002)
	require.InEpsilon(t, 9900, float64(r.P99), 0.002)
	require.InEpsilon(t, 9990, float64(r.P999), 0.002)
}

// A late call makes the calls behind it late.
func TestDrive_LateCalls(t *testing.T) {
	l := newLatencies()
	for range 990 {
		l.recordPaced(100*time.Microsecond, time.Millisecond)
	}
	l.recordPaced(10*time.Millisecond, time.Millisecond) // stands for calls of 10, 9, …, 1 ms
	p50, p99, p999 := l.quantiles()
	require.InEpsilon(t, 100*time.Microsecond, p50, 0.002)
	require.LessOrEqual(t, p99, 1010*time.Microsecond)
	require.InEpsilon(t, 9*time.Millisecond, p999, 0.002)
}

// The slowest operations count as the maximum.
func TestPercentiles_Slowest(t *testing.T) {
	l := newLatencies()
	l.record(0, time.Hour)
	_, _, p999 := l.quantiles()
	require.InEpsilon(t, slowest, p999, 0.002)
}

// drive runs for its time, and counts operations.
func TestDrive_TimeAndCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := func() error { fakeclock.Sleep(10 * time.Millisecond); return nil }
		begin, l := time.Now(), newLatencies()
		n, err := drive([]op{tick, tick, tick}, 995*time.Millisecond, l)
		require.NoError(t, err)
		require.EqualValues(t, 300, n, "those that have begun are waited for")
		require.Equal(t, time.Second, time.Since(begin))
		p50, _, p999 := l.quantiles()
		require.InEpsilon(t, 10*time.Millisecond, p50, 0.002)
		require.InEpsilon(t, 10*time.Millisecond, p999, 0.002)
	})
}

// The first failure ends drive.
func TestDrive_FirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, calls := time.Now(), 0
		n, err := drive([]op{
			func() error { fakeclock.Sleep(time.Millisecond); return nil },
			func() error {
				fakeclock.Sleep(300 * time.Microsecond)
				if calls++; calls == 3 {
					return errors.New("the third one")
				}
				return nil
			},
		}, time.Minute, nil)
		require.EqualError(t, err, "the third one")
		require.EqualValues(t, 3, n)
		require.Equal(t, time.Millisecond, time.Since(begin))
	})
}

// Cost is per operation.
func TestCost_PerOperation(t *testing.T) {
	var kept atomic.Pointer[[1000]byte]
	begin := usageNow()
	for range 10_000 {
		kept.Store(new([1000]byte))
	}
	var r row
	begin.cost(&r, 10_000, 64)
	require.InDelta(t, 1, float64(r.AllocsPerOp), 0.1)
	require.InDelta(t, 1024, float64(r.BytesPerOp), 100)
	require.InEpsilon(t, float64(r.OpsPerS)*64/1e6, float64(r.MBPerS), 1e-6)
}

// Rounds have a median and a spread.
func TestRounds_MedianAndSpread(t *testing.T) {
	require.EqualValues(t, 2, median([]figure{3, 1, 2}))
	require.EqualValues(t, 2.5, median([]figure{4, 1, 3, 2}))
	require.False(t, median([]figure{1, absent, 3}).known())
	require.False(t, median(nil).known())

	c := cell{workloads()[0], 1, fakes()[0]}
	var rounds []row
	for _, v := range []figure{100, 120, 90} {
		r := newRow(c)
		r.OpsPerS, r.P99 = v, 1000/v
		rounds = append(rounds, r)
	}
	m := mergeRounds(rounds, opsPerS)
	require.EqualValues(t, 100, m.OpsPerS)
	require.EqualValues(t, 10, m.P99)
	require.InDelta(t, 0.3, float64(m.Spread), 1e-9)
	require.Equal(t, 3, m.Rounds)
	require.False(t, m.MemBytes.known())
	require.False(t, mergeRounds(rounds[:1], opsPerS).Spread.known(), "one round has no spread")

	rounds[1] = failed(c, "it broke")
	m = mergeRounds(rounds, opsPerS)
	require.Equal(t, "it broke", m.Error)
	require.True(t, math.IsNaN(float64(m.OpsPerS)), "half of a result is none")
}

// TestOperations_RunOnce includes operations with a time limit that has passed before their
// goroutine begins.
func TestOperations_RunOnce(t *testing.T) {
	lat := newLatencies()
	var first, second int
	n, err := drive([]op{func() error { first++; return nil }, func() error { second++; return nil }}, 0, lat)
	require.NoError(t, err)
	require.Positive(t, first)
	require.Positive(t, second)
	require.EqualValues(t, first+second, n)
}
