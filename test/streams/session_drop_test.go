package streams

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// drops records the calls of Hooks.Dropped.
type drops struct {
	mu  sync.Mutex
	got []asterisque.Drop
}

func (d *drops) option() asterisque.Option {
	return asterisque.WithHooks(asterisque.Hooks{Dropped: func(_ *asterisque.Session, drop asterisque.Drop) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.got = append(d.got, drop)
	}})
}

func (d *drops) list() []asterisque.Drop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]asterisque.Drop(nil), d.got...)
}

// A call that expires before it leaves is never sent.
func TestTTL_NeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen drops
		peer, s := testkit.StuckPeer(t, seen.option())
		testkit.Congest(t, s)
		late, err := s.Open(testkit.Background, 1, []byte("late pipe"), asterisque.WithTTL(time.Second))
		require.NoError(t, err)
		_, err = testkit.Echo.Call(testkit.Background, s, "late call", asterisque.WithTTL(time.Second))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, asterisque.Repeatable(err))
		_, err = late.Result(testkit.Background)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		last, err := s.Open(testkit.Background, 1, []byte("last"))
		require.NoError(t, err)
		for {
			if m, err := message.ParseOpen(peer.Frame()); err == nil && m.Pipe > 1 {
				require.Equal(t, "last", string(m.Params))
				break
			}
		}
		last.Abort(nil)
	})
}

// A call that ends because of its time to live fails with ErrExpired.
func TestTTL_GiveUpIsExpired(t *testing.T) {
	within := func() context.Context {
		ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx
	}
	for name, start := range map[string]func(s *asterisque.Session) *pipe.Pipe{
		"a call with a deadline": func(s *asterisque.Session) *pipe.Pipe { testkit.Echo.Call(within(), s, ""); return nil },
		"a call with a time to live": func(s *asterisque.Session) *pipe.Pipe {
			testkit.Echo.Call(testkit.Background, s, "", asterisque.WithTTL(time.Second))
			return nil
		},
		"a pipe with a deadline": func(s *asterisque.Session) *pipe.Pipe { p, _ := s.Open(within(), 1, nil); return p },
		"a pipe with a time to live": func(s *asterisque.Session) *pipe.Pipe {
			p, _ := s.Open(testkit.Background, 1, nil, asterisque.WithTTL(time.Second))
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen drops
				_, s := testkit.StuckPeer(t, seen.option())
				testkit.Congest(t, s)
				want := []asterisque.Drop{{Open: true, Reason: asterisque.DropExpired}}
				if p := start(s); p != nil {
					_, err := p.Post([]byte("waits"), pipe.WithMarker("mine"))
					require.NoError(t, err)
					want = append(want, asterisque.Drop{Reason: asterisque.DropExpired, Marker: "mine"})
				}
				fakeclock.Sleep(2 * time.Second)
				require.ElementsMatch(t, want, seen.list())
			})
		})
	}
}

// A call that expires before a worker is free never runs.
func TestTTL_NeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		svc := asterisque.NewService()
		svc.Handle(1, "slow", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			ran++
			fakeclock.Sleep(time.Minute)
			return nil, nil
		})
		p, _ := testkit.StuckPeer(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		p.Send(&message.Open{Pipe: 0, Function: 1}, &message.Open{Pipe: 2, Function: 1, Meta: message.Meta{TTL: 1000}})
		require.Nil(t, p.Close().Abort)
		c := p.Close()
		require.Equal(t, codec.Expired, c.Abort.Code)
		require.Equal(t, codec.Refused, c.Abort.Ran)
		require.Equal(t, 1, ran)
	})
}

// Blocks that wait too long are dropped on either side, and reported.
func TestDrop_OldBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen drops
		svc := asterisque.NewService()
		svc.Handle(1, "late reader", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			fakeclock.Sleep(time.Minute)
			var log []byte
			for {
				b, err := p.Recv(ctx)
				if err == io.EOF {
					return fmt.Appendf(log, "end after %d", p.Skipped()), nil
				}
				if err != nil {
					return nil, err
				}
				log = fmt.Appendf(log, "%s after %d, ", b.Payload, b.Skipped)
			}
		})
		here, there := asterisque.NewNode(seen.option()), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		s, _ := asterisquetest.ConnectNodes(t, here, there)
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		for _, c := range []struct {
			text string
			ttl  time.Duration
		}{{"one", 0}, {"two", time.Second}, {"three", time.Hour}, {"four", time.Second}} {
			require.NoError(t, p.Send(testkit.Background, []byte(c.text), pipe.WithTTL(c.ttl)))
		}
		require.NoError(t, p.CloseSend())
		result, err := p.Result(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, "one after 0, three after 1, end after 1", string(result))
		synctest.Wait() // for reports
		require.Empty(t, seen.list(), "they left in time: only the receiver knows")
	})
}

// TestTTL_PausedSession sends a Block that waits first in the transport of a side that does not
// read, where its TTL does not run, and then for its handler, where it does.
func TestTTL_PausedSession(t *testing.T) {
	for name, c := range map[string]struct {
		busy time.Duration
		want string
	}{"taken at once": {0, "x after 0"}, "taken late": {time.Second, "end after 1"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := asterisque.NewService()
				took := make(chan string, 1)
				unpaused := make(chan struct{})
				svc.Handle(1, "reader", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					<-unpaused
					fakeclock.Sleep(c.busy)
					b, err := p.Recv(ctx)
					if err == io.EOF {
						took <- fmt.Sprintf("end after %d", p.Skipped())
						return nil, nil
					}
					took <- fmt.Sprintf("%s after %d", b.Payload, b.Skipped)
					return nil, err
				})
				_, _, dialled, accepted := testkit.TwoNodes(t, svc)
				p, err := dialled.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				synctest.Wait()
				accepted.StopReading()
				// StopReading takes effect after the frame that is being read, which is this one.
				_, err = dialled.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				require.NoError(t, p.Send(testkit.Background, []byte("x"), pipe.WithTTL(100*time.Millisecond)))
				require.NoError(t, p.CloseSend())
				fakeclock.Sleep(800 * time.Millisecond)
				accepted.StartReading()
				synctest.Wait()
				close(unpaused)
				require.Equal(t, c.want, <-took)
			})
		})
	}
}

// Under pressure, Blocks are thinned by their loss rate.
func TestDrop_LossRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen drops
		peer, s := testkit.StuckPeer(t, seen.option())
		testkit.Congest(t, s)
		p, err := s.Open(testkit.Background, 1, nil, asterisque.WithLoss(64))
		require.NoError(t, err)
		for i := range 100 {
			_, err := p.Post([]byte{byte(i)}, pipe.WithMarker(i))
			require.NoError(t, err)
			_, err = p.Post([]byte("keep"), pipe.WithLoss(0))
			require.NoError(t, err)
		}
		require.NoError(t, p.CloseSend())
		synctest.Wait() // for the reports
		list := seen.list()
		require.Len(t, list, 100*64/127)
		require.Equal(t, asterisque.Drop{Reason: asterisque.DropThinned, Marker: 1}, list[0], "every second one, by the application's own name")

		var kept, skipped int
		for {
			m, err := message.ParseBlock(peer.Frame())
			if err != nil || m.Pipe != 3 {
				continue
			}
			skipped += int(m.Meta.Skipped)
			if m.End {
				break
			}
			kept++
		}
		require.Equal(t, 200-len(list), kept)
		require.Equal(t, len(list), skipped)
	})
}

// Reaching the soft limit thins queued Blocks.
func TestDrop_AtTheSoftLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen drops
		_, s := testkit.StuckPeer(t, seen.option(), asterisque.WithLimits(asterisque.Limits{Outbound: testkit.Messages(300, 1000)}))
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		for range 2 { // the wire takes one, and the other departs
			_, err := p.Post(make([]byte, 65_000))
			require.NoError(t, err)
		}
		require.NoError(t, s.SetLimits(testkit.Messages(0, 0), testkit.Messages(50, 1000)))
		for range 100 {
			_, err := p.Post([]byte("x"), pipe.WithLoss(127))
			require.NoError(t, err)
		}
		synctest.Wait() // for the reports
		require.NotEmpty(t, seen.list())
		require.Less(t, s.Stats().Outbound.Messages, 50)
	})
}

// Every drop has its reason.
func TestDrop_Reasons(t *testing.T) {
	for reason, end := range map[asterisque.DropReason]func(*testkit.RawPeer, *pipe.Pipe, *asterisque.Session){
		asterisque.DropNoFunction: func(p *testkit.RawPeer, _ *pipe.Pipe, _ *asterisque.Session) {
			p.Send(&message.Close{Pipe: 3, Abort: codec.ErrNoFunction})
		},
		asterisque.DropDraining: func(p *testkit.RawPeer, _ *pipe.Pipe, _ *asterisque.Session) {
			p.Send(&message.Close{Pipe: 3, Abort: codec.ErrUnavailable})
		},
		asterisque.DropEnded:       func(_ *testkit.RawPeer, p *pipe.Pipe, _ *asterisque.Session) { p.Abort(nil) },
		asterisque.DropSessionLost: func(_ *testkit.RawPeer, _ *pipe.Pipe, s *asterisque.Session) { s.Close() },
	} {
		t.Run(reason.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen drops
				peer, s := testkit.StuckPeer(t, seen.option())
				_, err := s.Open(testkit.Background, 1, nil) // pipe 1
				require.NoError(t, err)
				p, err := s.Open(testkit.Background, 1, nil) // pipe 3, which leaves too
				require.NoError(t, err)
				fill, err := s.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				for range 4 {
					_, err := fill.Post(make([]byte, 60_000))
					require.NoError(t, err)
				}
				synctest.Wait()
				_, err = p.Post([]byte("waits"), pipe.WithMarker("mine"))
				require.NoError(t, err)
				require.NoError(t, p.CloseSend())
				end(peer, p, s)
				synctest.Wait()
				require.Contains(t, seen.list(), asterisque.Drop{Reason: reason, Marker: "mine"})
			})
		})
	}
}

// expiring returns option, which sets a time, and waits until that has passed. It is for a bubble.
func expiring[T any](option func(*T)) func(*T) {
	return func(b *T) {
		option(b)
		fakeclock.Sleep(time.Nanosecond)
	}
}

// Dropped Blocks do not use up the window.
func TestDrop_WindowUnused(t *testing.T) {
	for name, option := range map[string]pipe.SendOption{
		"expired": expiring(pipe.WithTTL(time.Nanosecond)),
		"thinned": pipe.WithLoss(127),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hi := testkit.Hello()
				hi.Window = 1 << 20
				peer, s := testkit.StuckPeerThatSays(t, hi)
				p, err := s.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				testkit.Congest(t, s)
				arrived := make(chan message.Block, 1)
				read := func() {
					for {
						m, err := message.ParseBlock(peer.Frame())
						if err == nil && m.Pipe == 1 {
							arrived <- m
							return
						}
					}
				}
				if name == "expired" {
					// a queued Block is dropped when it would leave, which takes a peer that reads
					go read()
				}
				for range 1000 {
					require.NoError(t, p.Send(testkit.Background, make([]byte, 10_000), option))
				}
				require.NoError(t, p.Send(testkit.Background, []byte("arrives")))
				if name == "thinned" {
					go read()
				}
				m := <-arrived
				require.Equal(t, "arrives", string(m.Payload))
				require.EqualValues(t, 1000, m.Meta.Skipped)
			})
		})
	}
}
