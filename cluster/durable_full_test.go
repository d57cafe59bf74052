package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// fill writes what takes all the room of the bucket, which has had some writes before.
func (r *replica) fill() {
	r.t.Helper()
	for _, size := range []int{100 << 10, 10 << 10, 1 << 10, 100, 1} {
		for n := 0; ; n++ {
			_, err := r.kv.Put(r.t.Context(), fmt.Sprintf("filler-%d-%d", size, n), make([]byte, size))
			if isFull(err) {
				break
			}
			require.NoError(r.t, err)
		}
	}
}

// ages lets the bucket have had so many writes that their number has more digits.
func (r *replica) ages() {
	r.t.Helper()
	for range 1000 {
		require.NoError(r.t, r.nc.Publish("$KV."+r.durable.bucket+".filler", nil))
	}
	_, err := r.kv.Put(r.t.Context(), "filler", nil)
	require.NoError(r.t, err)
}

func TestInAFullBucketThereIsRoomToSayThatACallRan(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	long := strings.Repeat("x", 1000)
	f, release := holds(long)
	a, b := s.replica("a", f, remembers(0, 1<<20)), s.replica("b", answers("at b"), remembers(0, 1<<20))
	a.ages()
	key := aKey()
	first := s.begins(a, key, 1)
	a.fill()
	release()
	requireText(t, long, first)
	_, err := b.books(key)
	requireMayHaveRun(t, asterisque.ErrOverloaded, err)
	require.EqualValues(t, 1, s.runs.Load())
}

func TestInAFullBucketTheLeaseOfACallIsRenewed(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	f, release := holds("at a")
	a := s.replica("a", f, remembers(0, 1<<20), lease(time.Second))
	a.ages()
	key := aKey()
	first := s.begins(a, key, 1)
	a.fill()
	begun := a.revision(key)
	require.Eventually(t, func() bool { return a.revision(key) > begun+1 }, enough, perLook)
	release()
	requireText(t, "at a", first)
}
