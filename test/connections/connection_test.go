package connections

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// requireBackoff checks that waits grow as a backoff specifies.
func requireBackoff(t *testing.T, first, most time.Duration, waits []time.Duration) {
	t.Helper()
	step := first
	for i, w := range waits {
		require.GreaterOrEqual(t, w, step/2, "wait %d of %v", i, waits)
		require.LessOrEqual(t, w, step, "wait %d of %v", i, waits)
		step = min(2*step, most)
	}
}

// Connecting is retried with longer and longer waits.
func TestConnect_LongerWaits(t *testing.T) {
	for _, c := range []struct{ first, most, realFirst, realMost time.Duration }{
		{100 * time.Millisecond, time.Second, 100 * time.Millisecond, time.Second},
		{0, 0, time.Second, 5 * time.Second},
		{2 * time.Second, time.Second, time.Second, time.Second},
	} {
		t.Run(fmt.Sprint(c.first, " ", c.most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := asterisque.NewNode(), asterisque.NewNode()
				defer here.Close()
				defer there.Close()
				left := 10
				l := &testkit.Links{To: there, Fail: func() error { left--; return map[bool]error{true: testkit.ErrBroken}[left >= 0] }}
				conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: c.first, Most: c.most, Dial: l.Dial})
				require.NoError(t, err)
				waits := l.Attempts()
				require.Len(t, waits, 10)
				requireBackoff(t, c.realFirst, c.realMost, waits)
				require.False(t, allEqual(waits[5:]), "there is some chance in it")

				fakeclock.Sleep(time.Minute)
				left = 3
				begin := time.Now()
				conn.Session().Close()
				fakeclock.Sleep(time.Minute)
				l.Mu.Lock()
				require.LessOrEqual(t, l.Dials[11].Sub(begin), c.realFirst/2, "after it had held for a while, the first attempt is made soon")
				l.Mu.Unlock()
				require.Equal(t, asterisque.Connected, conn.State())
				requireBackoff(t, c.realFirst, c.realMost, l.Attempts()[11:])
				conn.Close()
			})
		})
	}
}

func allEqual(d []time.Duration) bool {
	for _, x := range d {
		if x != d[0] {
			return false
		}
	}
	return true
}

// TestConnect_PeerThatCloses requires that a connection backs off from a peer that ends each
// session at once.
func TestConnect_PeerThatCloses(t *testing.T) {
	for _, resume := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("resume ", resume), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// ends with the session
				closing := asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(s *asterisque.Session) { go s.Close() }})
				here, there := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: resume})), asterisque.NewNode(closing, asterisque.WithResume(asterisque.Resume{For: resume}))
				defer here.Close()
				defer there.Close()
				l := &testkit.Links{To: there}
				conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: 100 * time.Millisecond, Most: time.Second, Dial: l.Dial})
				require.NoError(t, err)
				fakeclock.Sleep(10 * time.Second)
				requireBackoff(t, 100*time.Millisecond, time.Second, l.Attempts())
				conn.Close()
			})
		})
	}
}

// The last attempt is within the time limit for a resume.
func TestReconnect_LastAttempt(t *testing.T) {
	for _, outage := range []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond, 2950 * time.Millisecond} {
		t.Run(outage.String(), func(t *testing.T) {
			for range 10 { // there is some chance in it
				synctest.Test(t, func(t *testing.T) {
					conn, l, _, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: 3 * time.Second}))
					s := conn.Session()
					for range 2 { // after a short life too, which is followed by a rest
						l.FailWith(testkit.ErrBroken)
						l.Cut()
						fakeclock.Sleep(outage)
						l.FailWith(nil)
						fakeclock.Sleep(3*time.Second - outage)
						synctest.Wait()
						require.True(t, s == conn.Session(), "it was resumed")
						_, err := testkit.Echo.Call(testkit.Background, conn, "")
						require.NoError(t, err)
					}
					conn.Close()
				})
			}
		})
	}
}

// A session that cannot be resumed costs few further attempts.
func TestReconnect_NotResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, l, _, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: 3 * time.Second}))
		l.FailWith(testkit.ErrBroken)
		l.Cut()
		fakeclock.Sleep(time.Minute)
		require.Error(t, conn.Session().Err())
		require.Less(t, len(l.Attempts()), 40, "with 5 seconds in between, at the end")
		conn.Close()
	})
}

// Connecting ends with its context or its time limit.
func TestConnect_ContextOrTime(t *testing.T) {
	for name, c := range map[string]struct {
		ctx    time.Duration
		giveUp time.Duration
		want   error
	}{
		"the context ends":     {10 * time.Second, 0, asterisque.ErrExpired},
		"the time is over":     {0, 10 * time.Second, asterisque.ErrUnavailable},
		"the time comes first": {time.Minute, 10 * time.Second, asterisque.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here := asterisque.NewNode()
				defer here.Close()
				ctx := testkit.Background
				if c.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ctx)
					defer cancel()
				}
				l := &testkit.Links{Fail: func() error { return testkit.ErrBroken }}
				begin := time.Now()
				_, err := here.Connect(ctx, "", asterisque.ReconnectConfig{First: time.Second, MaxOutage: c.giveUp, Dial: l.Dial})
				require.ErrorIs(t, err, c.want)
				require.True(t, asterisque.Repeatable(err))
				require.InDelta(t, 10, time.Since(begin).Seconds(), 5, "and not later")
				require.LessOrEqual(t, time.Since(begin), 10*time.Second)
				if c.want == asterisque.ErrUnavailable {
					require.ErrorIs(t, err, testkit.ErrBroken, "which is why")
				}
				require.Less(t, len(l.Attempts()), 10)
			})
		})
	}
}

// A cancelled Connect returns at once.
func TestConnect_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := asterisque.NewNode()
		defer here.Close()
		ctx, cancel := context.WithCancel(testkit.Background)
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := here.Connect(ctx, "", asterisque.ReconnectConfig{Dial: func(ctx context.Context) (wire.Wire, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// The states of a connection are reported in order.
func TestConnection_StateOrder(t *testing.T) {
	for _, resume := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("resume ", resume), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var j testkit.Journal
				conn, l, _, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{OnState: j.Note, MaxOutage: time.Hour}, asterisque.WithResume(asterisque.Resume{For: resume}))
				for range 3 {
					fakeclock.Sleep(10 * time.Second)
					require.Equal(t, asterisque.Connected, conn.State())
					l.FailWith(testkit.ErrBroken)
					l.Cut()
					fakeclock.Sleep(10 * time.Second)
					require.Equal(t, asterisque.Reconnecting, conn.State())
					require.Equal(t, resume > 0, conn.Session() != nil)
					l.FailWith(nil)
				}
				fakeclock.Sleep(10 * time.Second)
				synctest.Wait()
				require.Equal(t, []string{"connected", "reconnecting", "connected", "reconnecting", "connected", "reconnecting", "connected"}, j.Read())
				l.FailWith(testkit.ErrBroken)
				l.Cut()
				fakeclock.Sleep(2 * time.Hour)
				require.Equal(t, []string{"reconnecting", "lost"}, j.Read()[7:])
				require.ErrorIs(t, j.Last, asterisque.ErrUnavailable)
				require.ErrorIs(t, conn.Err(), asterisque.ErrUnavailable)
				require.Equal(t, asterisque.Lost, conn.State())
				require.Nil(t, conn.Session())
				_, err := testkit.Echo.Call(testkit.Background, conn, "")
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
				require.True(t, asterisque.Repeatable(err))
			})
		})
	}
}

// Calls wait for the next session, or fail fast.
func TestConnection_WaitOrFailFast(t *testing.T) {
	for _, resume := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("resume ", resume), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, l, _, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: resume}))
				l.FailWith(testkit.ErrBroken)
				l.Cut()
				synctest.Wait()
				begin := time.Now()
				_, err := testkit.Echo.Call(testkit.Background, conn, "", asterisque.WithFailFast())
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
				require.True(t, asterisque.Repeatable(err))
				_, err = conn.Open(testkit.Background, 10, nil, asterisque.WithFailFast())
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
				require.Zero(t, time.Since(begin), "at once")

				_, err = testkit.Echo.Call(testkit.Background, conn, "", asterisque.WithTTL(3*time.Second))
				require.ErrorIs(t, err, asterisque.ErrExpired)
				require.True(t, asterisque.Repeatable(err), "it was never sent")
				require.Equal(t, 3*time.Second, time.Since(begin))
				ctx, cancel := context.WithTimeout(testkit.Background, 3*time.Second)
				defer cancel()
				_, err = conn.Call(ctx, 10, nil)
				require.ErrorIs(t, err, asterisque.ErrExpired)
				require.Equal(t, 6*time.Second, time.Since(begin))

				time.AfterFunc(10*time.Second, func() { l.FailWith(nil) })
				got, err := testkit.Echo.Call(testkit.Background, conn, "x", asterisque.WithTTL(time.Minute))
				require.NoError(t, err)
				require.Equal(t, "x", got)
				require.Greater(t, time.Since(begin), 15*time.Second)
				_, err = testkit.Echo.Call(testkit.Background, conn, "", asterisque.WithFailFast())
				require.NoError(t, err, "there is a session")
			})
		})
	}
}

// TestConnection_WithoutResume requires that a session ends with its wire if only one side has
// resume.
func TestConnection_WithoutResume(t *testing.T) {
	for name, c := range map[string]struct{ here, there time.Duration }{"on the side that connects": {time.Minute, 0}, "on the other side": {0, time.Minute}, "on neither": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, started, _ := testkit.BlockService()
				here, there := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: c.here})), asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: c.there}), asterisque.WithService(svc))
				defer here.Close()
				defer there.Close()
				l := &testkit.Links{To: there}
				conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: l.Dial})
				require.NoError(t, err)
				defer conn.Close()
				before := conn.Session()
				call := make(chan error)
				go func() { _, err := testkit.Block.Call(testkit.Background, conn, ""); call <- err }()
				<-started
				fakeclock.Sleep(time.Minute)
				begin := time.Now()
				l.Cut()
				require.ErrorIs(t, <-call, asterisque.ErrSessionClosed)
				_, err = conn.Call(testkit.Background, 1, nil)
				require.ErrorIs(t, err, asterisque.ErrNoFunction)
				require.NotSame(t, before, conn.Session())
				require.NotEqual(t, before.ID(), conn.Session().ID())
				require.LessOrEqual(t, time.Since(begin), time.Second/2)
				synctest.Wait() // for the end of the old session
				require.Len(t, there.Sessions(), 1)
			})
		})
	}
}

// A node that closes ends its connections.
func TestConnection_NodeCloses(t *testing.T) {
	for name, end := range map[string]func(n *asterisque.Node) error{
		"Close":    (*asterisque.Node).Close,
		"Shutdown": func(n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
	} {
		for _, connected := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", connected: ", connected), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var j testkit.Journal
					conn, l, here, _ := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{OnState: j.Note})
					if !connected {
						l.FailWith(testkit.ErrBroken)
						l.Cut()
						fakeclock.Sleep(time.Minute)
					}
					begin, dials := time.Now(), len(l.Attempts())
					require.NoError(t, end(here))
					<-conn.Done()
					require.Zero(t, time.Since(begin))
					require.Equal(t, asterisque.Lost, conn.State())
					fakeclock.Sleep(time.Hour)
					require.Len(t, l.Attempts(), dials, "no further dial")
					_, err := testkit.Echo.Call(testkit.Background, conn, "")
					require.Error(t, err)
					_, err = here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: l.Dial})
					require.ErrorIs(t, err, asterisque.ErrUnavailable)
				})
			})
		}
	}
}

// Shutdown of a connection completes running calls.
func TestConnection_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, gate, running, _ := testkit.GatedService()
		var j testkit.Journal
		conn, l, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{OnState: j.Note})
		p, err := conn.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		<-running
		done := make(chan error)
		go func() { done <- conn.Shutdown(testkit.Background) }()
		synctest.Wait()
		_, err = conn.Call(testkit.Background, 1, nil, asterisque.WithTTL(time.Second))
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		close(gate)
		require.NoError(t, p.CloseSend())
		_, err = p.Result(testkit.Background)
		require.NoError(t, err)
		require.NoError(t, <-done)
		synctest.Wait()
		require.Empty(t, there.Sessions())
		require.Len(t, l.Attempts(), 0, "it was dialled once")
		require.Equal(t, []string{"connected", "lost"}, j.Read())
	})
}

// A half-open wire is replaced.
func TestConnection_HalfOpenWire(t *testing.T) {
	for _, resume := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("resume ", resume), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, l, _, there := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: resume}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: time.Second, Silence: 3 * time.Second}))
				before := conn.Session()
				l.HalfOpen()
				begin := time.Now()
				_, err := testkit.Echo.Call(testkit.Background, conn, "x")
				require.Equal(t, resume > 0, err == nil, "%v", err)
				_, err = testkit.Echo.Call(testkit.Background, conn, "x")
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(begin), 4*time.Second)
				require.Equal(t, resume > 0, before == conn.Session())
				synctest.Wait()
				require.Len(t, there.Sessions(), 1)
			})
		})
	}
}
