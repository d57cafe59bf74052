package kv_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestRoom_ReadsOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		state, reads := jetstream.StreamState{}, 0
		room := kv.NewRoom(2, 100, func(context.Context) (*jetstream.StreamInfo, error) {
			reads++
			return &jetstream.StreamInfo{State: state, TimeStamp: time.Now()}, nil
		})
		require.True(t, room.HasRoom(t.Context()))
		room.Take()
		require.True(t, room.HasRoom(t.Context()))
		room.Take()
		require.False(t, room.HasRoom(t.Context()), "calls of this node count at once")
		require.Equal(t, 1, reads)
		fakeclock.Sleep(time.Second)
		require.True(t, room.HasRoom(t.Context()))
		state.Bytes = 100
		fakeclock.Sleep(time.Second)
		require.False(t, room.HasRoom(t.Context()))
		require.Equal(t, 3, reads)
	})
}

func TestRetry_TemporaryErrors(t *testing.T) {
	t.Parallel()
	final := errors.New("no permission")
	for _, test := range []struct {
		err  error
		want error
	}{
		{context.DeadlineExceeded, nil},
		{jetstream.ErrBucketNotFound, nil},
		{jetstream.ErrStreamNotFound, nil},
		{&jetstream.APIError{Code: 503}, nil},
		{kv.ErrNoJetStream, kv.ErrNoJetStream},
		{&kv.LimitError{}, &kv.LimitError{}},
		{final, final},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := kv.Retry(t.Context(), func(context.Context) error {
				if tries++; tries == 1 {
					return test.err
				}
				return nil
			})
			require.Equal(t, test.want, err)
		})
	}
}

func TestBackoff_Bounds(t *testing.T) {
	t.Parallel()
	require.Equal(t, 20*time.Millisecond, kv.Backoff(0))
	require.Equal(t, 40*time.Millisecond, kv.Backoff(1))
	require.Equal(t, time.Second, kv.Backoff(1<<20))
}
