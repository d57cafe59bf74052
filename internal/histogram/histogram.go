// Package histogram counts durations in a fixed number of buckets, from a microsecond to an hour,
// so that the percentiles of millions of durations need one kilobyte.
package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// each power of two has 8 buckets, so that a value is off by at most an eighth
	subBits = 3
	subs    = 1 << subBits
	buckets = subs + subs*(32-subBits) // 32 bits of microseconds: 71 minutes
)

// Histogram counts durations. It is safe for concurrent use. The zero Histogram is empty.
type Histogram struct {
	counts [buckets]atomic.Uint32
}

// Add counts d. A duration beyond the last bucket is counted in the last bucket.
func (h *Histogram) Add(d time.Duration) { h.counts[bucket(d)].Add(1) }

// Percentiles returns, for each of the ascending shares (0..1), the upper bound of its bucket, and
// the number of durations. All results are zero while the histogram is empty.
func (h *Histogram) Percentiles(shares ...float64) (at []time.Duration, n uint64) {
	var counts [buckets]uint64
	for i := range counts {
		counts[i] = uint64(h.counts[i].Load())
		n += counts[i]
	}
	at = make([]time.Duration, len(shares))
	var sum uint64
	i := 0
	for k, share := range shares {
		for ; i < buckets-1 && float64(sum+counts[i]) < share*float64(n); i++ {
			sum += counts[i]
		}
		if n > 0 {
			at[k] = upper(i)
		}
	}
	return at, n
}

func bucket(d time.Duration) int {
	us := uint64(max(d, 0) / time.Microsecond)
	if us < subs {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	return min(subs+shift*subs+int(us>>shift)-subs, buckets-1)
}

// upper returns the end of bucket i.
func upper(i int) time.Duration {
	if i < subs {
		return time.Duration(i+1) * time.Microsecond
	}
	shift := (i - subs) / subs
	return time.Duration((i-subs)%subs+subs+1) << shift * time.Microsecond
}
