package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// TestDrain_ErrorSaysIfRan shuts sessions down while calls are in every state: unsent, in flight,
// waiting, running, answered.
func TestDrain_ErrorSaysIfRan(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1024, 8, 64} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			for round := range 10 {
				shutDownUnderLoad(t, workers, time.Duration(round)*3*time.Millisecond)
			}
		})
	}
}

func shutDownUnderLoad(t *testing.T, workers int, after time.Duration) {
	const callers = 500
	var mu sync.Mutex
	ran := map[int]bool{} // guarded by mu; the calls that have begun
	work := asterisque.Func[int, int](1, "work")
	svc := asterisque.NewService()
	work.Handle(svc, func(_ context.Context, id int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[id] = true
		return id, nil
	})
	patient := asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute})
	here := asterisque.NewNode(patient)
	there := asterisque.NewNode(patient, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers}))
	defer here.Close()
	defer there.Close()
	a, b := testkit.TCPPair(t)
	slow := wiretest.Direction{Delay: 2 * time.Millisecond, Bandwidth: 200 << 10}
	dialled, accepted := asterisquetest.ConnectOver(t, here, there, wire.FromConn(wiretest.FaultyConn(a, wiretest.Faults{Out: slow, In: slow})), wire.FromConn(b))

	errs := make(map[int]error) // guarded by mu
	var calls sync.WaitGroup
	for i := range callers {
		calls.Go(func() {
			for id := i; ; id += callers {
				if _, err := work.Call(testkit.Background, dialled, id); err != nil {
					mu.Lock()
					errs[id] = err
					mu.Unlock()
					return
				}
			}
		})
	}
	time.Sleep(after) //nolint:forbidigo // calls are on their way, at every step of it
	require.NoError(t, accepted.Shutdown(testkit.Background))
	calls.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, errs, callers)
	for id, err := range errs {
		require.Equal(t, !ran[id], asterisque.Repeatable(err), "call %d: %v", id, err)
	}
}

// A Drain refuses the calls beyond it, however the session ends.
func TestDrain_CallsBeyondRefused(t *testing.T) {
	for name, c := range map[string]struct {
		drain message.Drain
		more  []interface{ AppendTo([]byte) []byte }
		runs  int // calls that may have run
	}{
		"the last one that is taken": {message.Drain{Last: 3}, nil, 2},
		"none is taken":              {message.Drain{None: true}, nil, 0},
		"a second Drain":             {message.Drain{Last: 1}, []interface{ AppendTo([]byte) []byte }{message.Drain{None: true}}, 1},
		"a word of farewell":         {message.Drain{Last: 3}, []interface{ AppendTo([]byte) []byte }{message.SessionClose{Code: codec.SessionClosed}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := testkit.DialRaw(t)
			var pipes []*pipe.Pipe
			for range 4 { // pipes 1, 3, 5 and 7
				one, err := s.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				pipes = append(pipes, one)
			}
			unary := make(chan error, 1)
			go func() { _, err := s.Call(testkit.Background, 1, nil); unary <- err }()
			for range 5 {
				_, err := message.ParseOpen(p.Frame())
				require.NoError(t, err)
			}
			p.Send(c.drain)
			p.Send(c.more...)
			p.W.Close()
			for i, one := range pipes {
				_, err := one.Result(testkit.Background)
				require.ErrorIs(t, err, asterisque.ErrSessionClosed, "which is why, in any case")
				require.Equal(t, i >= c.runs, asterisque.Repeatable(err), "call %d: %v", i, err)
				require.Equal(t, i >= c.runs, errors.Is(err, asterisque.ErrUnavailable))
			}
			require.True(t, asterisque.Repeatable(<-unary))
		})
	}
}

// Calls that have not begun when a session is closed are refused.
func TestClose_UnbegunRefused(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Session){
		"Close": func(s *asterisque.Session) { s.Close() },
		"Shutdown": func(s *asterisque.Session) {
			ctx, cancel := context.WithTimeout(testkit.Background, 10*time.Millisecond)
			defer cancel()
			s.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			svc, started, ended := testkit.BlockService()
			dialled, accepted := testkit.Connect(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
			runs := make(chan error, 1)
			go func() { _, err := testkit.Block.Call(testkit.Background, dialled, ""); runs <- err }()
			<-started
			waits := make(chan error)
			for range 50 {
				go func() { _, err := testkit.Block.Call(testkit.Background, dialled, ""); waits <- err }()
			}
			require.Eventually(t, func() bool { return accepted.Stats().Waiting == 50 }, testkit.Patience, time.Millisecond)
			end(accepted)
			for range 50 {
				err := <-waits
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
				require.True(t, asterisque.Repeatable(err))
			}
			err := <-runs
			require.ErrorIs(t, err, asterisque.ErrSessionClosed)
			require.False(t, asterisque.Repeatable(err))
			<-ended
		})
	}
}

// TestDrain_WaitingForRoom uses a server without free room for calls.
func TestDrain_WaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		release := make(chan struct{})
		svc.Handle(50, "sleep", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-release; return nil, nil })
		here := asterisque.NewNode()
		there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}),
			asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 10}}}))
		defer here.Close()
		defer there.Close()
		s, accepted := asterisquetest.ConnectNodes(t, here, there)
		answers := make(chan error, 100)
		for range cap(answers) {
			go func() { _, err := s.Call(testkit.Background, 50, nil); answers <- err }()
		}
		synctest.Wait()
		require.Positive(t, s.Stats().WaitOpens.Now)
		go accepted.Shutdown(testkit.Background) // ends with the session
		synctest.Wait()
		require.Zero(t, s.Stats().WaitOpens.Now)
		refused := len(answers)
		require.Positive(t, refused)
		for range refused {
			err := <-answers
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.True(t, asterisque.Repeatable(err))
		}
		close(release)
		for range cap(answers) - refused {
			require.NoError(t, <-answers)
		}
	})
}
