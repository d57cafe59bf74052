package piping_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// bubble is a test of a stream in a bubble.
func bubble(t *testing.T, plan flow.Plan, f func(t *testing.T, s *stream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newStream(t, plan)) })
}

const large = 50_000

func TestAllow_WhenReceiverWaits(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, []byte("before")))
		b := s.here.send(large)
		s.run()
		require.False(t, b.isDone())
		require.Equal(t, 1, s.here.asks)
		require.Zero(t, s.load().Large, "no receiver waits: a sleeping reader holds no room")

		first := s.there.recv()
		s.run()
		require.True(t, first.isDone())
		require.False(t, b.isDone(), "no receiver waits again")
		second := s.there.recv()
		synctest.Wait()
		require.Positive(t, s.load().Large)
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, b.err)
		require.True(t, second.isDone())
		require.Len(t, second.block.Payload, large)
		require.Zero(t, s.load().Large, "it was taken on arrival")
		require.Equal(t, 1, s.here.asks)
		require.Zero(t, s.here.back)
		require.NoError(t, s.here.Send(background, make([]byte, early-overhead)), "credit came by itself")
		s.finish()
	})
}

func TestWindow_GrowsBeforeAllow(t *testing.T) {
	wide := plan
	wide.Spare, wide.Room = 1<<20, 8<<20
	bubble(t, wide, func(t *testing.T, s *stream) {
		require.EqualValues(t, 64<<10, s.here.end().Account().Limit, "what a handler begins with while there is room")
		b := s.here.send(90_000)
		r := s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.True(t, r.isDone())
		require.Zero(t, s.load().Large)
		require.Greater(t, s.here.end().Account().Limit-s.here.end().Account().Sent, uint64(90_000), "a path that needs it keeps it")
		s.finish()
	})
}

func TestAllow_WrongTotal(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		total := s.here.end().Account().Sent + large + overhead
		s.here.end().AllowArrived(total + 1)
		synctest.Wait()
		require.False(t, b.isDone())
		r := s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.True(t, r.isDone())
		require.Zero(t, s.here.back)
		s.finish()
	})
}

func TestAsk_GivenUpBeforeDeparture(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		synctest.Wait()
		b.cancel()
		<-b.done
		require.ErrorIs(t, b.err, codec.ErrCanceled)
		s.there.recv()
		s.run()
		require.Zero(t, s.here.asks+s.here.back)
		require.NoError(t, s.here.Send(background, nil), "the pipe remains usable")
		b = s.here.send(large)
		s.run()
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.Equal(t, 1, s.here.asks)
		s.finish()
	})
}

func TestAsk_GivenUpAfterDeparture(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		b.cancel()
		s.run()
		require.Zero(t, s.here.back, "an Ask is not taken back, and an Allow not before it has come")
		r := s.there.recv()
		synctest.Wait()
		require.Positive(t, s.load().Large)
		s.run()
		require.Equal(t, 1, s.here.back)
		require.Zero(t, s.load().Large)
		require.False(t, r.isDone())
		require.NoError(t, s.here.Send(background, []byte("small")), "the pipe remains usable")
		s.run()
		require.True(t, r.isDone())
		s.finish()
	})
}

func TestAsk_GivenUpAtAllow(t *testing.T) {
	for range 50 {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			r := s.there.recv()
			synctest.Wait()
			require.True(t, s.there.s.tell())
			s.there.s.deliver()
			b.cancel()
			s.run()
			require.True(t, b.isDone())
			require.Equal(t, b.err == nil, r.isDone())
			require.Zero(t, s.load().Large)
			if b.err != nil {
				require.Equal(t, 1, s.here.back)
			}
			s.finish()
		})
	}
}

func TestAllow_UnsentBlock(t *testing.T) {
	for name, lose := range map[string]func(s *stream, b *doing){
		"the session refuses it": func(s *stream, b *doing) {
			s.here.s.crossing[0].on <- codec.ErrTooLarge
			<-b.done
			require.ErrorIs(t, b.err, codec.ErrTooLarge)
		},
		"its context ends while it waits for the session": func(s *stream, b *doing) {
			b.cancel()
			<-b.done
			require.ErrorIs(t, b.err, codec.ErrCanceled)
		},
		"the session drops it at once": func(s *stream, b *doing) {
			s.here.s.crossing[0].on <- errDrop
			<-b.done
			require.NoError(t, b.err)
		},
		"it is dropped before it departs": func(s *stream, b *doing) {
			s.here.s.crossing[0].on <- nil
			<-b.done
			require.NoError(t, b.err)
			s.here.drop(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, plan, func(t *testing.T, s *stream) {
				s.here.s.cross = func() bool { return true }
				b := s.here.send(large)
				s.run()
				r := s.there.recv()
				s.run()
				require.Len(t, s.here.s.crossing, 1)
				require.Positive(t, s.load().Large)
				lose(s, b)
				s.here.s.cross = nil
				s.run()
				require.Equal(t, 1, s.here.back)
				require.Zero(t, s.load().Large)
				require.EqualValues(t, early, s.here.end().Account().Limit, "an Allow is no credit")

				for range 3 { // each of them fits, and all together do not
					s.here.send(800)
				}
				s.run()
				require.True(t, r.isDone())
				for range 2 {
					s.there.recv()
					s.run()
				}
				s.finish()
			})
		})
	}
}

// drop drops the queued message at i.
func (e *end) drop(i int) {
	e.mu.Lock()
	b := e.queue[i].(piping.Outgoing)
	e.queue = append(e.queue[:i:i], e.queue[i+1:]...)
	e.mu.Unlock()
	e.end().Dropped(len(b.Payload))
}

func TestAsk_WaitsForAllowedBlock(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.here.s.cross = func() bool { return true }
		first := s.here.send(large)
		s.run()
		s.there.recv()
		s.run()
		require.Len(t, s.here.s.crossing, 1)
		second := s.here.send(large / 2) // its Ask would return the Allow of the first
		s.run()
		require.Equal(t, 1, s.here.asks)
		s.here.s.cross = nil
		s.here.s.crossing[0].on <- nil
		s.run()
		require.True(t, first.isDone())
		s.there.recv()
		s.run()
		require.True(t, second.isDone())
		s.finish()
	})
}

func TestAsk_CrossedByCredit(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, make([]byte, early-overhead)))
		require.True(t, s.here.depart())
		require.True(t, s.here.s.deliver())
		b := s.here.send(early - overhead + 1)
		synctest.Wait()
		require.True(t, s.here.depart())
		r := s.there.recv()
		<-r.done
		require.True(t, s.there.s.tell(), "a Credit for the first Block, which does not know of the Ask")
		require.True(t, s.there.s.deliver())
		synctest.Wait()
		require.False(t, b.isDone(), "it is one byte too little")
		r = s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.True(t, r.isDone())
		require.Equal(t, 1, s.here.asks)
		s.finish()
	})
}

func TestAsk_AnsweredByCredit(t *testing.T) {
	for name, departs := range map[string]bool{"which has left": true, "which has not": false} {
		t.Run(name, func(t *testing.T) {
			wide := plan
			wide.Spare, wide.Room = 8*early, 64*early // so that the window may double
			bubble(t, wide, func(t *testing.T, s *stream) {
				small := s.here.end().Account().Limit - overhead
				require.NoError(t, s.here.Send(background, make([]byte, small)))
				require.True(t, s.here.depart())
				require.True(t, s.here.s.deliver())
				b := s.here.send(early)
				synctest.Wait()
				if departs {
					require.True(t, s.here.depart())
				}
				<-s.there.recv().done
				require.True(t, s.there.s.tell())
				require.True(t, s.there.s.deliver())
				synctest.Wait()
				require.True(t, b.isDone())
				s.run()
				require.Equal(t, departs, s.here.asks == 1)
				<-s.there.recv().done
				s.run()
				require.Zero(t, s.load().Large)
				require.Zero(t, s.here.back)
				s.finish()
			})
		})
	}
}

func TestPost_NeverAsks(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		_, err := s.here.Post(make([]byte, large))
		require.ErrorIs(t, err, codec.ErrOverloaded)
		require.NoError(t, s.here.Send(background, nil))
		a := do(func(ctx context.Context) (pipe.Block, error) {
			fits, err := s.here.AwaitCredit(ctx)
			return pipe.Block{Payload: make([]byte, fits)}, err
		})
		s.run()
		require.False(t, a.isDone())
		require.Zero(t, s.here.asks)
		<-s.there.recv().done
		s.run()
		require.True(t, a.isDone(), "it came by itself")
		require.Len(t, a.block.Payload, early-overhead)
		_, err = s.here.Post(a.block.Payload)
		require.NoError(t, err)
		s.finish()
	})
}

func TestWindow_UsedUpIsPressure(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		judged := 0
		s.here.s.judge = func() bool { judged++; return judged == 1 }
		lossy := func(ctx context.Context) (pipe.Block, error) {
			return pipe.Block{}, s.here.Send(ctx, make([]byte, large), pipe.WithLoss(64))
		}
		<-do(lossy).done
		require.Equal(t, 1, judged, "it was dropped")
		s.run()
		require.Zero(t, s.here.asks)
		b := do(lossy)
		s.run()
		require.False(t, b.isDone(), "it was spared, and waits as any other")
		require.Equal(t, 1, s.here.asks)
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.Equal(t, 2, judged, "once each")
		require.NoError(t, s.here.Send(background, make([]byte, early-overhead), pipe.WithLoss(64)))
		require.Equal(t, 2, judged, "what fits is not judged")
		s.finish()
	})
}
