//go:build unix

package callstore_test

import (
	"bufio"
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// TestDurablePaused_Process is the process that is paused: a replica that prints its address,
// prints a line when it runs a call, and runs the call until it reads a line.
func TestDurablePaused_Process(t *testing.T) {
	s, in := &bookings{t: t, urls: natstest.InChild(t)}, bufio.NewScanner(os.Stdin)
	r := s.replica("paused", func(context.Context, int) (string, error) {
		natstest.Say("runs")
		in.Scan()
		return "by the paused one", nil
	}, leaseOf(time.Second))
	natstest.Say("%s", r.url)
	<-t.Context().Done() // it is killed
}

func TestDurablePaused_NoSecondRun(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	b := s.replica("b", bookingtest.Answers("at b"), leaseOf(time.Second))
	p := s.pausedProcess()
	key := bookingtest.Key()
	first := p.runs(key)
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	_, err := b.booksAtLast(key)
	bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)

	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	p.Tell("go on")
	bookingtest.RequireText(t, "by the paused one", first)
	text, err := b.booksAtLast(key)
	require.NoError(t, err, "its answer may still be put in")
	require.Equal(t, "by the paused one", text)
	require.Zero(t, s.Runs.Load())
}

func TestDurablePaused_Killed(t *testing.T) {
	t.Parallel()
	s := newBookings(t)
	b := s.replica("b", bookingtest.Answers("at b"), leaseOf(time.Second))
	p := s.pausedProcess()
	key := bookingtest.Key()
	p.runs(key)
	require.NoError(t, p.Process.Kill())
	_, err := b.booksAtLast(key)
	bookingtest.RequireMayHaveRun(t, asterisque.ErrUnavailable, err)
	require.Zero(t, s.Runs.Load())
}

// pausedReplica is a replica that is a process of its own.
type pausedReplica struct {
	*natstest.Child
	t       testing.TB
	session *asterisque.Session
}

func (s *bookings) pausedProcess() *pausedReplica {
	p := natstest.StartChild(s.t, "TestDurablePaused_Process", s.b.URL())
	node := asterisque.NewNode()
	s.t.Cleanup(func() { node.Close() })
	session, err := node.Dial(s.t.Context(), p.Said())
	require.NoError(s.t, err)
	return &pausedReplica{p, s.t, session}
}

// runs makes a call with a key, and returns once the call runs. On a busy machine a lease can
// expire before its claim is stored, and then the call has not run.
func (p *pausedReplica) runs(key []byte) <-chan bookingtest.Outcome {
	p.t.Helper()
	ended := make(chan bookingtest.Outcome, 1)
	go func() { // ends with the process
		for {
			text, err := bookingtest.Book.Call(p.t.Context(), p.session, 1, asterisque.WithIdempotencyKey(key))
			if err != nil && asterisque.Repeatable(err) && p.session.Err() == nil {
				continue
			}
			if err != nil {
				p.Process.Kill() // no more reads of its output follow
			}
			ended <- bookingtest.Outcome{Text: text, Err: err}
			return
		}
	}()
	require.Equal(p.t, "runs", p.Said())
	return ended
}
