package calls

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestWaiting_ErrorNamesCause makes a call or a Block wait until its deadline, for each possible
// cause, and requires that the error names the cause.
func TestWaiting_ErrorNamesCause(t *testing.T) {
	sleeper := func() *asterisque.Service {
		svc := asterisque.NewService()
		svc.Handle(50, "sleeps", testkit.WaitForContext)
		return svc
	}
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(testkit.Background, time.Second)
	}
	for name, c := range map[string]struct {
		opts []asterisque.Option
		wait func(ctx context.Context, s *asterisque.Session) error
		want string
		st   func(asterisque.Stats) asterisque.Wait
	}{
		"room for a window here": {
			[]asterisque.Option{asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(64<<10, 1<<20)})},
			func(_ context.Context, s *asterisque.Session) (err error) {
				for i := 0; err == nil; i++ { // the waiting call is the first to give up
					ctx, cancel := context.WithTimeout(testkit.Background, time.Hour-time.Duration(i)*time.Minute)
					defer cancel()
					_, err = s.Open(ctx, 50, nil)
				}
				return err
			},
			"waiting for room for a window at the caller", func(st asterisque.Stats) asterisque.Wait { return st.WaitWindow },
		},
		"a place of the function": {
			[]asterisque.Option{asterisque.WithMaxOutstanding(50, 1)},
			func(ctx context.Context, s *asterisque.Session) (err error) {
				go s.Call(testkit.Background, 50, nil)
				synctest.Wait()
				_, err = s.Call(ctx, 50, nil)
				return err
			},
			"waiting for one of the 1 calls of function 50 that may be outstanding (WithMaxOutstanding), and 1 wait",
			func(st asterisque.Stats) asterisque.Wait { return st.WaitPlace },
		},
		"the window of a pipe": {
			nil,
			func(ctx context.Context, s *asterisque.Session) error {
				p, err := s.Open(testkit.Background, 50, nil)
				for err == nil {
					err = p.Send(ctx, make([]byte, 1000))
				}
				return err
			},
			"waiting for the window of the pipe", nil,
		},
		"room for calls at the peer": {
			[]asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 1}), testkit.LittleRoom()},
			func(ctx context.Context, s *asterisque.Session) (err error) {
				for range 100 {
					go s.Call(ctx, 50, nil)
				}
				synctest.Wait()
				_, err = s.Call(ctx, 50, nil)
				return err
			},
			"waiting for room for calls at the peer", func(st asterisque.Stats) asterisque.Wait { return st.WaitOpens },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dialled, _ := testkit.InMemory(t, sleeper(), c.opts...)
				ctx, cancel := soon()
				defer cancel()
				err := c.wait(ctx, dialled)
				require.ErrorIs(t, err, asterisque.ErrExpired)
				require.ErrorContains(t, err, c.want)
				if c.st != nil {
					require.Positive(t, c.st(dialled.Stats()).Times)
					require.Positive(t, c.st(dialled.Stats()).For)
				}
				dialled.Close()
			})
		})
	}
}

// TestWaiting_OutboundLimit uses a peer that reads nothing: the error names the limit.
func TestWaiting_OutboundLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := testkit.StuckPeer(t, asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(100_000, 300_000)}))
		ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
		defer cancel()
		var err error
		for err == nil {
			_, err = s.Open(ctx, 1, make([]byte, 10_000))
		}
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.ErrorContains(t, err, "waiting for the outbound soft limit of 100000 bytes")
		require.EqualValues(t, 1, s.Stats().WaitOutbound.Times)
		require.Equal(t, time.Second, s.Stats().WaitOutbound.For)
	})
}

// TestWaiting_UsedUpWindow: a used-up window counts as pressure, so Blocks that may be dropped
// never wait for a sleeping reader.
func TestWaiting_UsedUpWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(50, "sleeps", testkit.WaitForContext)
		dialled, _ := testkit.InMemory(t, svc)
		for _, c := range []struct {
			loss  uint8
			least int
		}{{127, 900}, {64, 0}} {
			p, err := dialled.Open(testkit.Background, 50, nil, asterisque.WithLoss(c.loss))
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
			sent := 0
			for ; sent < 1000 && err == nil; sent++ {
				err = p.Send(ctx, make([]byte, 1000))
			}
			cancel()
			require.GreaterOrEqual(t, sent, c.least)
			if c.loss < 127 {
				require.ErrorIs(t, err, asterisque.ErrExpired, "one that is kept waits")
			}
			p.Abort(nil)
		}
	})
}

// TestWaiting_NoWindows requires that two sides that answer each other with more bytes than both
// may hold, over an unbuffered wire, make progress at their outbound limits.
func TestWaiting_NoWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := func() *asterisque.Node {
			svc := asterisque.NewService()
			svc.Handle(60, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 10_000), nil })
			return asterisque.NewNode(append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 4}),
				asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(8, 10_000), Outbound: testkit.BytesOf(20_000, 10_000_000)}))...)
		}
		here, there := node(), node()
		defer here.Close()
		defer there.Close()
		a, b := testkit.Unbuffered()
		dialled, accepted := asterisquetest.ConnectOver(t, here, there, a, b)
		done := make(chan error)
		for _, s := range []*asterisque.Session{dialled, accepted} {
			for range 200 {
				go func() {
					_, err := s.Call(testkit.Background, 60, make([]byte, 5_000))
					done <- err
				}()
			}
		}
		for range 400 {
			require.NoError(t, <-done)
		}
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestWaiting_HeldIsCounted requires that the encoded parameters of waiting calls are counted.
func TestWaiting_HeldIsCounted(t *testing.T) {
	const callers, size = 100, 1000
	svc := asterisque.NewService()
	svc.Handle(50, "sleeps", testkit.WaitForContext)
	synctest.Test(t, func(t *testing.T) {
		dialled, _ := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}), testkit.LittleRoom())
		ctx, cancel := context.WithCancel(testkit.Background)
		for range callers {
			go dialled.Call(ctx, 50, make([]byte, size)) // ends with ctx
		}
		synctest.Wait()
		w := dialled.Stats().WaitOpens
		require.Positive(t, w.Now)
		require.GreaterOrEqual(t, w.Bytes, w.Now*size)
		require.Less(t, w.Bytes, w.Now*(size+1000))
		cancel()
		synctest.Wait()
		require.Zero(t, dialled.Stats().WaitOpens.Bytes)
		dialled.Close()
	})
}
