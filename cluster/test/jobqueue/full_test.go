package jobqueue_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// written returns a file with a text, such as the configuration of a NATS server.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// perLook is the polling interval of tests.
const perLook = 10 * time.Millisecond

func TestQueueFull_LargeOutcome(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		s.takes("a", bookingtest.Answers(strings.Repeat("x", 1<<20)))
		r := posts(t, c, 1)
		_, err := results(t, c, r)
		bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		require.ErrorContains(t, err, "too large")
		soonWaiting(t, c, 0)
		require.EqualValues(t, 1, s.Runs.Load())
	})
}

func TestQueueFull_NoRoom(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		var receipts []string
		for n := range 5 {
			receipts = append(receipts, posts(t, c, n))
		}
		var all sync.WaitGroup // they run together
		all.Add(len(receipts))
		a := s.takes("a", func(_ context.Context, n int) (string, error) {
			if n < len(receipts) {
				all.Done()
				all.Wait()
			}
			return strings.Repeat("x", 400<<10), nil
		}, func(c *settings) { c.Durable.Bytes, c.Worker.Look = 16<<20, 100*time.Millisecond })
		kept := 0
		for _, r := range receipts {
			_, err := results(t, c, r)
			if err == nil {
				kept++
				continue
			}
			bookingtest.RequireMayHaveRun(t, asterisque.ErrOverloaded, err)
		}
		require.Equal(t, 3, kept, "the limit, with the reserve")
		fakeclock.Sleep(2 * time.Second) // the room is read again
		ran := s.Runs.Load()
		r := posts(t, c, 99)
		require.Never(t, func() bool { return s.Runs.Load() > ran }, time.Second, perLook)
		stream, err := a.js.Stream(t.Context(), "KV_"+outcomesBucket)
		require.NoError(t, err)
		require.NoError(t, stream.Purge(t.Context()))
		text, err := results(t, c, r)
		require.NoError(t, err)
		require.Len(t, text, 400<<10)
	})
}

func TestQueue_UnknownClass(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newBookings(t)
		c := s.customer()
		posts(t, c, 1)
		for _, class := range []string{"3", "-1", "x"} {
			_, err := c.js.Publish(t.Context(), queueSubject+class, nil, jetstream.WithRetryAttempts(0))
			require.ErrorIs(t, err, jetstream.ErrNoStreamResponse, class)
		}
		require.EqualValues(t, 1, waiting(t, c))
	})
}
