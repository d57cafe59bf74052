package shutdown

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// endless offers function 70, which runs until its context ends, and then sends the error of its
// session to ended.
func endless() (svc *asterisque.Service, ended chan error) {
	svc, ended = asterisque.NewService(), make(chan error, 100)
	svc.Handle(70, "endless", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		<-ctx.Done()
		ended <- asterisque.SessionOf(ctx).Err()
		return nil, ctx.Err()
	})
	return svc, ended
}

const saysCut = "cut after 30s of drain"

// wantCut requires an error that reports a call cut off on either side.
func wantCut(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.ErrorContains(t, err, saysCut)
	require.False(t, asterisque.Repeatable(err), "it has begun")
}

// Calls that run at the time limit of a drain are aborted on both sides.
func TestDrainLimit_BothSides(t *testing.T) {
	for name, shutDown := range map[string]func(*asterisque.Session, *asterisque.Node) error{
		"Session.Shutdown": func(s *asterisque.Session, _ *asterisque.Node) error { return s.Shutdown(testkit.Background) },
		"Node.Shutdown":    func(_ *asterisque.Session, n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
		"a context that would give more": func(s *asterisque.Session, _ *asterisque.Node) error {
			ctx, cancel := context.WithTimeout(testkit.Background, time.Hour)
			defer cancel()
			return s.Shutdown(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, ended := endless()
				_, there, dialled, accepted := testkit.TwoNodes(t, svc)
				stream, err := dialled.Open(testkit.Background, 70, nil)
				require.NoError(t, err)
				unary := make(chan error, 1)
				go func() { _, err := dialled.Call(testkit.Background, 70, nil); unary <- err }()
				synctest.Wait()
				begin := time.Now()
				err = shutDown(accepted, there)
				require.Equal(t, 30*time.Second, time.Since(begin))
				wantCut(t, err)
				wantCut(t, <-unary)
				_, err = stream.Result(testkit.Background)
				wantCut(t, err)
				wantCut(t, <-ended)
				wantCut(t, <-ended)
				wantCut(t, accepted.Err())
				<-dialled.Done()
				wantCut(t, dialled.Err())
			})
		})
	}
}

// Calls of the draining side are aborted too.
func TestDrainLimit_OwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, ended := endless()
		here, _, dialled, _ := testkit.TwoNodes(t, svc)
		made := make(chan error, 1)
		go func() { _, err := dialled.Call(testkit.Background, 70, nil); made <- err }()
		synctest.Wait()
		wantCut(t, here.Shutdown(testkit.Background))
		wantCut(t, <-made)
		wantCut(t, <-ended)
	})
}

// Calls that wait at the time limit of a drain did not run.
func TestDrainLimit_WaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, _ := endless()
		_, _, dialled, accepted := testkit.TwoNodes(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		errs := make(chan error, 3)
		for range cap(errs) {
			go func() { _, err := dialled.Call(testkit.Background, 70, nil); errs <- err }()
		}
		synctest.Wait()
		wantCut(t, accepted.Shutdown(testkit.Background))
		repeatable := 0
		for range cap(errs) {
			err := <-errs
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			if asterisque.Repeatable(err) {
				repeatable++
			}
		}
		require.Equal(t, 2, repeatable, "one of them ran")
	})
}

func TestDrainLimit(t *testing.T) {
	within := func(d time.Duration) func(*asterisque.Session) error {
		return func(s *asterisque.Session) error {
			ctx, cancel := context.WithTimeout(testkit.Background, d)
			defer cancel()
			return s.Shutdown(ctx)
		}
	}
	for name, c := range map[string]struct {
		limit    time.Duration
		shutDown func(*asterisque.Session) error
		takes    time.Duration
		want     error
	}{
		"is 30 seconds by default":                  {0, within(time.Hour), 30 * time.Second, asterisque.ErrUnavailable},
		"is what the option says":                   {time.Minute, within(time.Hour), time.Minute, asterisque.ErrUnavailable},
		"is that of a context that ends before":     {time.Minute, within(time.Second), time.Second, context.DeadlineExceeded},
		"is only that of the context if negative":   {-1, within(time.Hour), time.Hour, context.DeadlineExceeded},
		"may be shorter than the context's by much": {time.Millisecond, within(time.Hour), time.Millisecond, asterisque.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, ended := endless()
				_, _, dialled, accepted := testkit.TwoNodes(t, svc, testkit.DrainOf(c.limit))
				_, err := dialled.Open(testkit.Background, 70, nil)
				require.NoError(t, err)
				synctest.Wait()
				begin := time.Now()
				require.ErrorIs(t, c.shutDown(accepted), c.want)
				require.Equal(t, c.takes, time.Since(begin))
				<-ended
			})
		})
	}
}

// A shutdown that a handler calls has the same time limit.
func TestDrainLimit_OfHandler(t *testing.T) {
	for name, shutDown := range map[string]func(context.Context, *asterisque.Node) error{
		"of the session": func(ctx context.Context, _ *asterisque.Node) error { return asterisque.SessionOf(ctx).Shutdown(ctx) },
		"of the node":    func(ctx context.Context, n *asterisque.Node) error { return n.Shutdown(ctx) },
		"of the session, with another context": func(ctx context.Context, _ *asterisque.Node) error {
			err := asterisque.SessionOf(ctx).Shutdown(testkit.Background)
			if !errors.Is(err, asterisque.ErrUnavailable) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, ended := asterisque.NewService(), make(chan error, 1)
				var there *asterisque.Node
				svc.Handle(1, "ends", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
					if err := shutDown(ctx, there); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
					ended <- asterisque.SessionOf(ctx).Err()
					return nil, ctx.Err()
				})
				var dialled *asterisque.Session
				_, there, dialled, _ = testkit.TwoNodes(t, svc)
				begin := time.Now()
				_, err := dialled.Call(testkit.Background, 1, nil)
				require.Equal(t, 30*time.Second, time.Since(begin).Round(time.Second))
				wantCut(t, err)
				wantCut(t, <-ended)
			})
		})
	}
}

// A handler that never returns delays no shutdown.
func TestDrainLimit_StuckHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, stuck := asterisque.NewService(), make(chan struct{})
		svc.Handle(1, "stuck", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-stuck; return nil, nil })
		_, there, dialled, _ := testkit.TwoNodes(t, svc)
		_, err := dialled.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		synctest.Wait()
		wantCut(t, there.Shutdown(testkit.Background))
		close(stuck)
	})
}

// A peer that reads nothing delays no shutdown.
func TestDrainLimit_UnreadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, dialled, accepted := testkit.TwoNodes(t, testkit.EchoService())
		dialled.StopReading()
		for range 64 {
			go accepted.Call(testkit.Background, 1, make([]byte, 64<<10)) // ends with the session
		}
		synctest.Wait()
		begin := time.Now()
		wantCut(t, accepted.Shutdown(testkit.Background))
		require.LessOrEqual(t, time.Since(begin), 32*time.Second)
	})
}

// A shutdown of a suspended session does not wait longer.
func TestDrainLimit_Away(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, _ := endless()
		conn, l, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Hour}))
		_, err := conn.Open(testkit.Background, 70, nil)
		require.NoError(t, err)
		synctest.Wait()
		l.FailWith(testkit.ErrBroken)
		l.Cut()
		synctest.Wait()
		require.Len(t, there.Sessions(), 1, "which waits to be resumed")
		begin := time.Now()
		require.Error(t, there.Shutdown(testkit.Background))
		require.LessOrEqual(t, time.Since(begin), 32*time.Second)
		conn.Close()
	})
}

// Shutdown of a connection has the same time limit.
func TestDrainLimit_OfConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, ended := endless()
		conn, _, _, _ := testkit.Link(t, svc, asterisque.ReconnectConfig{})
		stream, err := conn.Open(testkit.Background, 70, nil)
		require.NoError(t, err)
		synctest.Wait()
		begin := time.Now()
		wantCut(t, conn.Shutdown(testkit.Background))
		require.Equal(t, 30*time.Second, time.Since(begin).Round(time.Second))
		_, err = stream.Result(testkit.Background)
		wantCut(t, err)
		wantCut(t, <-ended)
	})
}

// A durable call that is aborted continues, and is answered on the next session.
func TestDrainLimit_DurableCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(ctx context.Context, n int) (int, error) {
			select {
			case <-time.After(time.Minute):
				return n, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		})
		conn, _, _, there := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{})
		answered := make(chan error, 1)
		go func() {
			_, err := testkit.Work.Call(testkit.Background, conn, 7, asterisque.WithDurable())
			answered <- err
		}()
		synctest.Wait()
		begin := time.Now()
		wantCut(t, there.Sessions()[0].Shutdown(testkit.Background))
		require.NoError(t, <-answered)
		require.Equal(t, time.Minute, time.Since(begin).Round(time.Second))
		require.Equal(t, []int{7}, l.List(), "once")
		conn.Close()
	})
}

// TestShutdown_Concurrent makes both sides, and several callers on each, shut one session down.
func TestShutdown_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, _ := endless()
		here, there, dialled, accepted := testkit.TwoNodes(t, svc)
		_, err := dialled.Open(testkit.Background, 70, nil)
		require.NoError(t, err)
		synctest.Wait()
		begin := time.Now()
		var all sync.WaitGroup
		for _, shutDown := range []func(context.Context) error{dialled.Shutdown, accepted.Shutdown, here.Shutdown, there.Shutdown, accepted.Shutdown} {
			all.Go(func() { shutDown(testkit.Background) })
		}
		all.Wait()
		require.Equal(t, 30*time.Second, time.Since(begin).Round(time.Second))
		require.ErrorIs(t, accepted.Err(), asterisque.ErrUnavailable)
		require.ErrorIs(t, dialled.Err(), asterisque.ErrUnavailable)
	})
}
