package jobqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// TestQueueKilled_Process is the process that is killed: a node that takes a posted call, prints a
// line, and runs the call until it is killed.
func TestQueueKilled_Process(t *testing.T) {
	s := &bookings{t: t}
	url := natstest.InChild(t)
	s.takes("killed", func(ctx context.Context, _ int) (string, error) {
		natstest.Say("runs")
		<-ctx.Done()
		return "", ctx.Err()
	}, brieflyLeased, func(c *settings) { c.URLs = url })
	<-t.Context().Done()
}

// brieflyLeased makes other nodes notice quickly that a node is gone.
func brieflyLeased(c *settings) {
	c.Durable.Lease = time.Second
	c.Durable.Idempotent = []uint16{bookingtest.Rebook.Number()}
	handedOutSoon(c)
}

func TestQueueKilled_MayHaveRun(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	c := s.customer()
	r := posts(t, c, 1)
	s.killTaker()
	s.takes("b", bookingtest.Answers("at b"), brieflyLeased)
	_, err := results(t, c, r)
	bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
	soonWaiting(t, c, 0)
	require.Zero(t, s.Runs.Load())
}

func TestQueueKilled_Idempotent(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	c := s.customer()
	r, err := post(t.Context(), c, "orders", bookingtest.Rebook, 1)
	require.NoError(t, err)
	s.killTaker()
	s.takes("b", bookingtest.Answers("at b"), brieflyLeased)
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
	defer cancel()
	text, err := resultOf(ctx, c, bookingtest.Rebook, r)
	require.NoError(t, err)
	require.Equal(t, "at b", text)
	require.EqualValues(t, 1, s.Runs.Load())
}

// killTaker makes a process take a call, and kills it while the call runs.
func (s *bookings) killTaker() {
	taker := natstest.StartChild(s.t, "TestQueueKilled_Process", s.b.URL())
	require.Equal(s.t, "runs", taker.Said())
	taker.Kill()
}
