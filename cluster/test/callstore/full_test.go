package callstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/codec"
)

// perLook is the polling interval of tests.
const perLook = 10 * time.Millisecond

// fill fills the bucket, which has had some writes before.
func (r *replica) fill() {
	r.t.Helper()
	for _, size := range []int{100 << 10, 10 << 10, 1 << 10, 100, 1} {
		for n := 0; ; n++ {
			_, err := r.kv.Put(r.t.Context(), fmt.Sprintf("filler-%d-%d", size, n), make([]byte, size))
			if kv.IsFull(err) {
				break
			}
			require.NoError(r.t, err)
		}
	}
}

// ages makes many writes, so that the sequence number gets more digits.
func (r *replica) ages() {
	r.t.Helper()
	for range 1000 {
		require.NoError(r.t, r.nc.Publish("$KV."+bucketName+".filler", nil))
	}
	_, err := r.kv.Put(r.t.Context(), "filler", nil)
	require.NoError(r.t, err)
}

func TestDurableFull_RoomForRan(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		long := strings.Repeat("x", 1000)
		f, release := bookingtest.Holds(long)
		a, b := s.replica("a", f, remembers(1<<16, 1<<20)), s.replica("b", bookingtest.Answers("at b"), remembers(1<<16, 1<<20))
		a.ages()
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		a.fill()
		release()
		bookingtest.RequireText(t, long, first)
		_, err := b.books(key)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestDurableFull_LeaseRenewal(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a := s.replica("a", f, remembers(1<<16, 1<<20), leaseOf(time.Second))
		a.ages()
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		a.fill()
		begun := a.revision(key)
		require.Eventually(t, func() bool { return a.revision(key) > begun+1 }, natstest.Timeout, perLook)
		release()
		bookingtest.RequireText(t, "at a", first)
	})
}

func TestDurable_ErrorTooLarge(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		a := s.replica("a", func(context.Context, int) (string, error) {
			return "", &asterisque.Abort{Code: 1234, Message: strings.Repeat("\x01", codec.MaxReason), Detail: make([]byte, 1<<20-5<<10)}
		})
		key := bookingtest.Key()
		_, err := a.books(key)
		require.Equal(t, asterisque.Code(1234), codec.AbortOf(err).Code)
		require.Equal(t, "unkept", a.state(key))
	})
}

func TestDurable_LargeAnswer(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		long := strings.Repeat("x", 1<<20-4<<10)
		a, b := s.replica("a", bookingtest.Answers(long)), s.replica("b", bookingtest.Answers("at b"))
		key := bookingtest.Key()
		for _, r := range []*replica{a, b} {
			text, err := r.books(key)
			require.NoError(t, err)
			require.Equal(t, len(long), len(text))
		}
	})
}

func TestDurable_LostAcknowledgement(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		f, release := bookingtest.Holds("at a")
		a := s.replica("a", f)
		key := bookingtest.Key()
		first := s.begins(a, key, 1)
		a.kv.Fail(nil, natstest.ErrLostAnswer)
		a.kv.Once(func() {
			a.kv.Fail(&jetstream.APIError{ErrorCode: 10077}, nil)
			a.kv.Once(func() { a.kv.Fail(nil, nil) })
		})
		release()
		bookingtest.RequireText(t, "at a", first)
		require.Equal(t, "answered", a.state(key))
	})
}
