package sessions

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/stretchr/testify/require"
)

// A peer that has closed the wire is detected soon at the soft limit.
func TestLiveness_ClosedAtSoftLimit(t *testing.T) {
	for name, c := range map[string]struct {
		ping time.Duration // the interval of both sides
		each time.Duration // the application takes a Block; 0: it takes none
		most time.Duration
	}{
		"the application takes nothing":           {15 * time.Second, 0, 5 * time.Second},
		"the application takes from time to time": {15 * time.Second, time.Second, 20 * time.Second},
		"no Pings, and it takes nothing":          {0, 0, 10 * time.Second},
		"no Pings, and it takes at intervals":     {0, time.Second, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taken := 0
				svc := asterisque.NewService()
				svc.Handle(50, "slow", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					if c.each == 0 {
						<-ctx.Done()
					}
					for ctx.Err() == nil {
						fakeclock.Sleep(c.each)
						if _, err := p.Recv(ctx); err == nil {
							taken++
						}
					}
					return nil, nil
				})
				opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 100)}), asterisque.WithTimeouts(asterisque.Timeouts{Stall: time.Hour}))
				p, s := testkit.StuckPeerThatSays(t, testkit.HelloWith(c.ping, 3*c.ping), opts...)
				p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
				for range 14 {
					p.Send(&message.Block{Payload: []byte("x")})
				}
				synctest.Wait()
				require.Equal(t, limits.Soft, s.Stats().InboundState)
				begin := time.Now()
				p.W.Close()
				<-s.Done()
				require.ErrorIs(t, s.Err(), asterisque.ErrSessionClosed)
				require.LessOrEqual(t, time.Since(begin), c.most)
				fakeclock.Sleep(c.each) // the handler ends
				synctest.Wait()
				if c.each > 0 {
					require.GreaterOrEqual(t, taken, 4, "it is not disturbed")
				}
			})
		})
	}
}

// TestLiveness_DeadAndLiving covers all states of this side and its peer: a dead peer is detected,
// and a living one is kept.
func TestLiveness_DeadAndLiving(t *testing.T) {
	const interval, timeout = 15 * time.Second, 45 * time.Second
	here := map[string]func(p *testkit.RawPeer, s *asterisque.Session){
		"idle": func(*testkit.RawPeer, *asterisque.Session) {},
		"at its soft limit": func(p *testkit.RawPeer, s *asterisque.Session) {
			for range 15 {
				p.Send(&message.Block{Payload: []byte("x")})
			}
			synctest.Wait()
			require.Equal(p.T, limits.Soft, s.Stats().InboundState)
		},
		"paused": func(p *testkit.RawPeer, s *asterisque.Session) {
			s.StopReading()
			for range 5 {
				p.Send(&message.Block{Payload: []byte("x")})
			}
		},
		"paused, with nothing to read": func(_ *testkit.RawPeer, s *asterisque.Session) { s.StopReading() },
		"paused, and writing": func(p *testkit.RawPeer, s *asterisque.Session) {
			s.StopReading()
			p.Send(&message.Block{Payload: []byte("x")})
			go func() { // ends with the session
				for tick := time.NewTicker(5 * time.Second); ; {
					select {
					case <-tick.C:
						if pipe, err := s.Open(testkit.Background, 1, nil); err == nil {
							pipe.Abort(nil)
						}
					case <-s.Done():
						tick.Stop()
						return
					}
				}
			}()
		},
	}
	for name, begin := range here {
		join := func(t *testing.T) (*testkit.RawPeer, *asterisque.Session) {
			svc, _, running, _ := testkit.GatedService()
			opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 100)}), asterisque.WithTimeouts(asterisque.Timeouts{Stall: 24 * time.Hour}))
			p, s := testkit.StuckPeerThatSays(t, testkit.HelloWith(interval, timeout), opts...)
			p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
			<-running
			return p, s
		}
		t.Run(name+", and the peer lives", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := join(t)
				begin(p, s)
				heard, _ := p.Alive(interval)
				for range 3600 / 45 {
					before := heard.Load()
					fakeclock.Sleep(timeout)
					require.NoError(t, s.Err())
					require.Greater(t, heard.Load(), before, "the peer hears of this side in time")
				}
				s.Close()
			})
		})
		t.Run(name+", and the peer is gone", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := join(t)
				begin(p, s)
				go func() { // ends with the wire: its frames are lost
					for _, err := p.W.ReadFrame(1 << 20); err == nil; _, err = p.W.ReadFrame(1 << 20) {
					}
				}()
				from := time.Now()
				<-s.Done()
				require.ErrorIs(t, s.Err(), asterisque.ErrUnavailable)
				require.GreaterOrEqual(t, time.Since(from), timeout)
				require.Less(t, time.Since(from), 5*timeout)
			})
		})
		t.Run(name+", and the peer closes", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, s := join(t)
				begin(p, s)
				synctest.Wait()
				p.W.Close()
				from := time.Now()
				<-s.Done()
				require.ErrorIs(t, s.Err(), asterisque.ErrSessionClosed)
				require.LessOrEqual(t, time.Since(from), 2*interval, "soon")
			})
		})
	}
}

// TestLiveness_DeadOverTCP uses a proxy that silently loses all bytes.
func TestLiveness_DeadOverTCP(t *testing.T) {
	there := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithTimeouts(asterisque.Timeouts{Ping: 50 * time.Millisecond, Silence: 500 * time.Millisecond}))
	here := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: 50 * time.Millisecond, Silence: 500 * time.Millisecond}))
	t.Cleanup(func() { here.Close(); there.Close() })
	proxy := testkit.NewProxy(t, there)
	var s *asterisque.Session
	testkit.Settled(t, func() (ok bool) { // a machine may be so busy that a living peer seems dead
		var err error
		if s, err = here.Dial(testkit.Background, "tcp://"+proxy.Addr()); err == nil {
			_, err = testkit.Echo.Call(testkit.Background, s, "")
		}
		return err == nil
	})
	proxy.HalfOpen()
	_, err := testkit.Echo.Call(testkit.Background, s, "")
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	testkit.Settled(t, func() bool { return len(there.Sessions()) == 0 })
}
