package connections

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// TestOutage_ErrorNamesCause uses a server that is away for good: the error of a waiting call has
// the start and the cause of the outage.
func TestOutage_ErrorNamesCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, l, _, _ := testkit.Link(t, asterisque.NewService(), asterisque.ReconnectConfig{})
		require.Nil(t, conn.Outage())
		fakeclock.Sleep(time.Minute)
		l.Mu.Lock()
		l.Fail = func() error { return testkit.ErrBroken }
		l.Mu.Unlock()
		lost := time.Now()
		l.Cut()
		fakeclock.Sleep(20 * time.Second)

		for name, call := range map[string]func(ctx context.Context) error{
			"a call": func(ctx context.Context) error { _, err := conn.Call(ctx, 1, nil); return err },
			"a pipe": func(ctx context.Context) error { _, err := conn.Open(ctx, 1, nil); return err },
			"a durable call": func(ctx context.Context) error {
				_, err := conn.Call(ctx, 1, nil, asterisque.WithDurable())
				return err
			},
			"a time to live": func(context.Context) error {
				_, err := conn.Call(testkit.Background, 1, nil, asterisque.WithTTL(3*time.Second))
				return err
			},
			"a pipe's time to live": func(context.Context) error {
				_, err := conn.Open(testkit.Background, 1, nil, asterisque.WithTTL(3*time.Second))
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(testkit.Background, 3*time.Second)
			defer cancel()
			err := call(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.ErrorIs(t, err, asterisque.ErrExpired, name)
			require.NotErrorIs(t, err, testkit.ErrBroken, "%s has expired, and nothing else", name)
			require.True(t, asterisque.Repeatable(err), name)
			var o *asterisque.NotConnectedError
			require.ErrorAs(t, err, &o, name)
			require.Equal(t, lost, o.Since, name)
			require.ErrorIs(t, o.Why, testkit.ErrBroken, name)
			require.True(t, o.Next.After(time.Now()), "attempts take no time here")
			require.WithinDuration(t, time.Now(), o.Next, 5*time.Second, name)
			require.ErrorContains(t, err, "there is no session with the peer since "+lost.Format("15:04:05"), name)
			require.ErrorContains(t, err, testkit.ErrBroken.Error(), name)
			require.ErrorContains(t, err, "next attempt at ", name)
		}

		_, err := conn.Call(testkit.Background, 1, nil, asterisque.WithFailFast())
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		var o *asterisque.NotConnectedError
		require.ErrorAs(t, err, &o)
		require.Equal(t, lost, o.Since)

		l.Mu.Lock()
		l.Fail = nil
		l.Mu.Unlock()
		_, err = conn.Call(testkit.Background, 1, nil)
		require.ErrorIs(t, err, asterisque.ErrNoFunction, "which the peer says")
		require.Nil(t, conn.Outage())
	})
}

// TestBackground_CallsWait uses a server that starts later.
func TestBackground_CallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
		defer here.Close()
		defer there.Close()
		begin := time.Now()
		l := &testkit.Links{To: there, Fail: func() error {
			if time.Since(begin) < time.Minute {
				return testkit.ErrBroken
			}
			return nil
		}}
		conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Background: true, Dial: l.Dial})
		require.NoError(t, err)
		require.Zero(t, time.Since(begin))
		require.False(t, conn.Ready())
		require.Equal(t, begin, conn.Outage().Since)
		got, err := testkit.Echo.Call(testkit.Background, conn, "late")
		require.NoError(t, err)
		require.Equal(t, "late", got)
		require.True(t, conn.Ready())
		require.Less(t, time.Since(begin), time.Minute+6*time.Second)
	})
}

// TestPersist_AfterRefusal uses a server that repairs its list of users: a persistent connection
// continues after a final refusal.
func TestPersist_AfterRefusal(t *testing.T) {
	for name, persist := range map[string]bool{"by default it is lost": false, "persistent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refuse atomic.Bool
				refuse.Store(true)
				svc := testkit.EchoService()
				there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
					if refuse.Load() {
						return nil, asterisque.ErrUnauthorized.Withf("unknown user")
					}
					return nil, nil
				}}))
				here := asterisque.NewNode()
				defer here.Close()
				defer there.Close()
				l, j := &testkit.Links{To: there}, new(testkit.Journal)
				told := make(chan error, 10)
				conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{RetryFatal: persist, Background: true, Dial: l.Dial, OnState: func(c *asterisque.Connection, s asterisque.ConnectionState, err error) {
					j.Note(c, s, err)
					told <- err
				}})
				require.NoError(t, err)
				defer conn.Close()
				fakeclock.Sleep(time.Minute)
				refuse.Store(false)
				if persist {
					require.ErrorIs(t, conn.Outage().Why, asterisque.ErrUnauthorized)
					_, err := testkit.Echo.Call(testkit.Background, conn, "x")
					require.NoError(t, err)
					return
				}
				require.Equal(t, asterisque.Lost, conn.State())
				require.ErrorIs(t, conn.Err(), asterisque.ErrUnauthorized)
				require.ErrorIs(t, <-told, asterisque.ErrUnauthorized)
				_, err = testkit.Echo.Call(testkit.Background, conn, "x")
				require.ErrorIs(t, err, asterisque.ErrUnauthorized)
				require.True(t, asterisque.Repeatable(err))
			})
		})
	}
}

// A hopeless configuration is final for a persistent connection, too.
func TestPersist_HopelessIsFinal(t *testing.T) {
	conn, err := testkit.NewNode(t).Connect(testkit.Background, "carrier-pigeon://roof", asterisque.ReconnectConfig{RetryFatal: true})
	require.ErrorIs(t, err, wire.ErrURL)
	require.Nil(t, conn)
}

// TestRefusal_OnlyFinalOnes uses 50 agents with a server that cannot decide for a moment.
func TestRefusal_OnlyFinalOnes(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		back int
	}{
		{"a plain error", errors.New("the database is away"), 50},
		{"overloaded", asterisque.ErrOverloaded.Withf("later"), 50},
		{"a code of the application", &asterisque.Abort{Code: 1000, Message: "not now"}, 50},
		{"canceled", context.Canceled, 50},
		{"unauthorized", asterisque.ErrUnauthorized.Withf("not you"), 0},
		{"handshake", asterisque.ErrHandshake.Withf("too old"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				there := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
					if time.Since(begin) < 3*time.Second {
						return nil, c.err
					}
					return nil, nil
				}}))
				defer there.Close()
				l := &testkit.Links{To: there}
				agents := make([]*asterisque.Connection, 50)
				for i := range agents {
					here := asterisque.NewNode()
					defer here.Close()
					var err error
					agents[i], err = here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Background: true, Dial: l.Dial})
					require.NoError(t, err)
				}
				fakeclock.Sleep(20 * time.Second)
				back := 0
				for _, conn := range agents {
					if conn.Ready() {
						back++
					} else {
						require.Equal(t, asterisque.Lost, conn.State())
					}
				}
				require.Equal(t, c.back, back)
			})
		})
	}
}
