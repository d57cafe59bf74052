package histogram

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestPercentiles_Precision(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rnd.ExpFloat64() * float64(3*time.Millisecond))
		h.Add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	shares := []float64{0.01, 0.5, 0.95, 0.99, 1}
	at, n := h.Percentiles(shares...)
	require.EqualValues(t, len(all), n)
	for i, share := range shares {
		truth := all[int(share*float64(len(all)-1))]
		require.GreaterOrEqual(t, at[i], truth, share)
		require.LessOrEqual(t, at[i], truth+truth/7+2*time.Microsecond, share)
	}
}

func TestBucket_Bounds(t *testing.T) {
	for i := range buckets {
		require.Equal(t, i, bucket(upper(i)-time.Nanosecond), i)
		if i < buckets-1 {
			require.Equal(t, i+1, bucket(upper(i)), i)
		}
	}
}

func TestAdd_OutOfRange(t *testing.T) {
	var h Histogram
	h.Add(-time.Second)
	h.Add(1000 * time.Hour)
	at, n := h.Percentiles(0.5, 1)
	require.EqualValues(t, 2, n)
	require.Equal(t, []time.Duration{time.Microsecond, upper(buckets - 1)}, at)
}

func TestHistogram_Empty(t *testing.T) {
	at, n := new(Histogram).Percentiles(0.5, 0.99)
	require.Zero(t, n)
	require.Equal(t, []time.Duration{0, 0}, at)
}
