package shutdown

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// TestRetiring_NoCallFails shuts sessions down gracefully under load, one server after the other.
func TestRetiring_NoCallFails(t *testing.T) {
	for name, resume := range map[string]time.Duration{"without resume": 0, "with resume": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) {
					fakeclock.Sleep(time.Duration(n%50) * time.Millisecond)
					return 2 * n, nil
				})
				j := new(testkit.Journal)
				conn, l, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{OnState: j.Note}, asterisque.WithResume(asterisque.Resume{For: resume}))
				var calls sync.WaitGroup
				stop := make(chan struct{})
				for i := range 20 {
					opts := [][]asterisque.CallOption{nil, {asterisque.WithDurable()}, {asterisque.WithTTL(10 * time.Second)}}[i%3]
					calls.Go(func() {
						for n := i; ; n++ {
							select {
							case <-stop:
								return
							default:
							}
							if got, err := testkit.Work.Call(testkit.Background, conn, n, opts...); err != nil || got != 2*n {
								t.Errorf("call %d: %d, %v", n, got, err)
								return
							}
						}
					})
				}
				for range 5 {
					fakeclock.Sleep(2 * time.Second)
					next := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: resume}))
					defer next.Close()
					l.LeadTo(next)
					require.NoError(t, there.Shutdown(testkit.Background))
					there = next
				}
				close(stop)
				calls.Wait()
				conn.Close()
				want := []string{"connected"}
				for range 5 {
					want = append(want, "reconnecting", "connected")
				}
				synctest.Wait() // for the reports
				require.Equal(t, want, j.Read()[:len(want)])
				require.Len(t, l.Attempts(), 5)
			})
		})
	}
}

// retirement is a connection with a first session that retires while a stream and a call run there.
type retirement struct {
	conn    *asterisque.Connection
	links   *testkit.Links
	here    *asterisque.Node // at this end
	old     *asterisque.Session
	wire    *wiretest.Wire // of that
	stream  *pipe.Pipe
	call    chan error
	release chan struct{} // ends the call
}

// retire makes the peer shut the session down.
func retire(t *testing.T, opts ...asterisque.Option) *retirement {
	return retireBy(t, func(there *asterisque.Node, _ *asterisque.Session) {
		there.Sessions()[0].Shutdown(testkit.Background) // ends with the session
	}, opts...)
}

func retireBy(t *testing.T, begin func(there *asterisque.Node, old *asterisque.Session), opts ...asterisque.Option) *retirement {
	r := &retirement{call: make(chan error, 1), release: make(chan struct{})}
	svc := asterisque.NewService()
	svc.Handle(1, "mirror", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if err != nil {
				return nil, nil
			}
			if err := p.Send(ctx, b.Payload); err != nil {
				return nil, err
			}
		}
	})
	svc.Handle(2, "sleep", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		select {
		case <-r.release:
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	})
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	var there *asterisque.Node
	var err error
	r.conn, r.links, r.here, there = testkit.Link(t, svc, asterisque.ReconnectConfig{}, append(opts, testkit.DrainOf(-1))...)
	r.stream, err = r.conn.Open(testkit.Background, 1, nil)
	require.NoError(t, err)
	go func() { _, err := r.conn.Call(testkit.Background, 2, nil); r.call <- err }()
	fakeclock.Sleep(2 * time.Second) // so long that the connection counts as one that holds
	r.old, r.wire = r.conn.Session(), r.links.Last
	go begin(there, r.old) // ends with the session at the latest
	synctest.Wait()
	require.Equal(t, asterisque.Reconnecting, r.conn.State())
	fakeclock.Sleep(time.Second / 2) // within which it connects again
	synctest.Wait()
	require.NotSame(t, r.old, r.conn.Session())
	require.Equal(t, asterisque.Connected, r.conn.State())
	return r
}

// Calls on a session that retires run to their end.
func TestRetiring_CallsContinue(t *testing.T) {
	requireGoesOn(t, retire)
}

// A session retires when this side shuts it down.
func TestRetiring_ByThisSide(t *testing.T) {
	requireGoesOn(t, func(t *testing.T, opts ...asterisque.Option) *retirement {
		return retireBy(t, func(_ *asterisque.Node, old *asterisque.Session) {
			old.Retire()
			old.Retire() // again
			require.False(t, old.Resumable())
			_, err := testkit.Echo.Call(testkit.Background, old, "on the old session")
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.True(t, asterisque.Repeatable(err))
		}, opts...)
	})
}

// requireGoesOn requires that calls on a session that retires run to their end.
func requireGoesOn(t *testing.T, retire func(t *testing.T, opts ...asterisque.Option) *retirement) {
	synctest.Test(t, func(t *testing.T) {
		r := retire(t, asterisque.WithService(testkit.EchoService()))
		for range 10 {
			_, err := testkit.Echo.Call(testkit.Background, r.conn, "on the new session")
			require.NoError(t, err)
			require.NoError(t, r.stream.Send(testkit.Background, []byte("x")))
			b, err := r.stream.Recv(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, "x", string(b.Payload))
			fakeclock.Sleep(time.Minute)
		}
		close(r.release)
		require.NoError(t, <-r.call)
		require.NoError(t, r.old.Err())
		require.Len(t, r.here.Sessions(), 2)
		require.NoError(t, r.stream.CloseSend())
		_, err := r.stream.Result(testkit.Background)
		require.NoError(t, err)
		<-r.old.Done()
		require.ErrorIs(t, r.old.Err(), asterisque.ErrSessionClosed)
		fakeclock.Sleep(2 * time.Second) // until both sides have heard so
		require.Len(t, r.here.Sessions(), 1)
		require.Len(t, r.links.Attempts(), 1)
		r.conn.Close()
	})
}

// The peer may call back on a session that retires.
func TestRetiring_CallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
		defer node.Close()
		d := &drainer{t: t, after: 10 * time.Second, say: []message.Control{message.Drain{Last: 0}}}
		conn, err := node.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: d.dial})
		require.NoError(t, err)
		answer, err := conn.Call(testkit.Background, 3, nil)
		require.NoError(t, err)
		require.Equal(t, "called back", string(answer))
		require.Greater(t, d.sessions(), 1, "there is another one already")
		conn.Close()
		fakeclock.Sleep(2 * time.Second) // until the server has noticed
	})
}

// A retiring session that loses its wire is not resumed.
func TestRetiring_LostWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retire(t, asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		defer close(r.release)
		begin := time.Now()
		r.wire.Cut()
		require.ErrorIs(t, <-r.call, asterisque.ErrUnavailable)
		_, err := r.stream.Result(testkit.Background)
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorIs(t, r.old.Err(), asterisque.ErrUnavailable)
		require.Less(t, time.Since(begin), time.Second, "at once")
		synctest.Wait()
		require.Len(t, r.here.Sessions(), 1)
		require.Len(t, r.links.Attempts(), 1)
		_, err = testkit.Echo.Call(testkit.Background, r.conn, "")
		require.NoError(t, err)
		r.conn.Close()
	})
}

// The end of a connection is that of its retired sessions.
func TestRetiring_EndOfConnection(t *testing.T) {
	for name, end := range map[string]func(*asterisque.Connection, *asterisque.Node){
		"Close":               func(c *asterisque.Connection, _ *asterisque.Node) { c.Close() },
		"Shutdown, in a time": func(c *asterisque.Connection, _ *asterisque.Node) { shutDownWithin(c, time.Minute) },
		"the node's Close":    func(_ *asterisque.Connection, n *asterisque.Node) { n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := retire(t)
				defer close(r.release)
				end(r.conn, r.here)
				require.Error(t, r.old.Err())
				require.Error(t, <-r.call)
				_, err := r.stream.Result(testkit.Background)
				require.Error(t, err)
				require.Empty(t, r.here.Sessions())
			})
		})
	}
}

func shutDownWithin(c *asterisque.Connection, d time.Duration) error {
	ctx, cancel := context.WithTimeout(testkit.Background, d)
	defer cancel()
	return c.Shutdown(ctx)
}

// Shutdown waits for retiring sessions.
func TestRetiring_ShutdownWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := retire(t, asterisque.WithService(testkit.EchoService()))
		time.AfterFunc(time.Minute, func() { close(r.release); r.stream.CloseSend() })
		begin := time.Now()
		require.NoError(t, shutDownWithin(r.conn, time.Hour))
		require.Equal(t, time.Minute, time.Since(begin).Round(time.Second))
		require.NoError(t, <-r.call)
		_, err := r.stream.Result(testkit.Background)
		require.NoError(t, err)
		require.Empty(t, r.here.Sessions())
	})
}

// Calls wait or fail fast while the only server drains.
func TestRetiring_OnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, l, _, there := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{})
		l.FailWith(testkit.ErrBroken)
		synctest.Wait()
		require.NoError(t, there.Sessions()[0].Shutdown(testkit.Background))
		synctest.Wait()
		require.Equal(t, asterisque.Reconnecting, conn.State())
		_, err := testkit.Echo.Call(testkit.Background, conn, "", asterisque.WithFailFast())
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.True(t, asterisque.Repeatable(err))
		time.AfterFunc(time.Minute, func() { l.FailWith(nil) })
		_, err = testkit.Echo.Call(testkit.Background, conn, "")
		require.NoError(t, err)
		conn.Close()
	})
}

// TestRetiring_DurableCalls requires that a durable call that the old server answers late does not
// block another call.
func TestRetiring_DurableCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) {
			if n == 0 {
				fakeclock.Sleep(time.Hour)
			}
			return n, nil
		})
		// counts durable calls over all sessions of a peer
		conn, _, _, there := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{}, asterisque.WithWorkers(asterisque.Workers{Session: 2}))
		var calls sync.WaitGroup
		var answered atomic.Int64
		durable := func(n int) {
			calls.Go(func() {
				got, err := testkit.Work.Call(testkit.Background, conn, n, asterisque.WithDurable())
				if err != nil || got != n {
					t.Errorf("call %d: %d, %v", n, got, err)
				}
				answered.Add(1)
			})
			synctest.Wait()
		}
		durable(0)
		go there.Sessions()[0].Shutdown(testkit.Background) // ends with the session
		synctest.Wait()
		for n := range 10 {
			durable(1 + n)
		}
		fakeclock.Sleep(time.Minute)
		require.Equal(t, int64(10), answered.Load())
		calls.Wait()
		require.Equal(t, testkit.UpTo(11), l.List(), "each once, and in order")
		conn.Close()
	})
}
