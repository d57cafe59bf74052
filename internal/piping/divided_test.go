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

func TestDivided_ReceiverWaits(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, []byte("before")))
		b := s.here.send(large)
		s.run()
		require.False(t, b.isDone())
		require.Zero(t, s.load().Large, "no receiver waits: a sleeping reader holds no room")

		first := s.there.recv()
		s.run()
		require.True(t, first.isDone())
		require.False(t, b.isDone(), "no receiver waits again")
		require.EqualValues(t, 6+overhead+early, s.there.end().Account().Received, "its window is full")
		require.Zero(t, s.load().Large)
		second := s.there.recv()
		synctest.Wait()
		require.Positive(t, s.load().Large)
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, b.err)
		require.True(t, second.isDone())
		require.Len(t, second.block.Payload, large)
		require.Zero(t, s.load().Large, "it was taken on arrival")
		require.NoError(t, s.here.Send(background, make([]byte, early-overhead)), "credit came by itself")
		s.finish()
	})
}

func TestDivided_WindowGrowsFirst(t *testing.T) {
	wide := plan
	wide.Elastic, wide.Room = 1<<20, 8<<20
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

func TestDivided_SmallBlocksWait(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, make([]byte, 1000)))
		small := s.here.send(early - overhead)
		s.run()
		require.False(t, small.isDone())
		require.EqualValues(t, 1000+overhead, s.there.end().Account().Received, "its credit comes by itself")
		<-s.there.recv().done
		s.run()
		require.True(t, small.isDone())
		s.finish()
	})
}

func TestDivided_BeginsWithOneKilobyte(t *testing.T) {
	wide := plan
	wide.Elastic, wide.Room = 64<<10, 512<<10
	for _, left := range []int{overhead + 1023, overhead + 1024} {
		bubble(t, wide, func(t *testing.T, s *stream) {
			limit := int(s.here.end().Account().Limit)
			require.NoError(t, s.here.Send(background, make([]byte, limit-overhead-left)))
			s.here.send(large)
			s.run()
			require.Equal(t, left > overhead+1023, s.there.end().Account().Received == uint64(limit))
			s.finish()
		})
	}
}

func TestDivided_GivenUp(t *testing.T) {
	for name, steps := range map[string]func(s *stream){
		"before a piece has departed":     func(*stream) { synctest.Wait() },
		"while its window is full":        func(s *stream) { s.run() },
		"while its credit is about to go": func(s *stream) { s.run(); s.there.recv(); synctest.Wait() },
		"while its credit is under way":   func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.s.tell() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, plan, func(t *testing.T, s *stream) {
				b := s.here.send(large)
				steps(s)
				b.cancel()
				<-b.done
				require.ErrorIs(t, b.err, codec.ErrCanceled)
				s.run()
				here, there := s.here.end().Account(), s.there.end().Account()
				require.EqualValues(t, large+overhead, here.Sent, "it counts in full")
				require.EqualValues(t, large+overhead, there.Received)
				require.Zero(t, s.load().Large)
				small := s.here.send(0)
				s.run()
				require.True(t, small.isDone(), "the pipe remains usable")
				next := s.here.send(large)
				for !next.isDone() {
					s.there.recv()
					s.run()
				}
				require.NoError(t, next.err)
				s.finish()
			})
		})
	}
}

func TestDivided_RefusedPiece(t *testing.T) {
	for name, at := range map[string]int{"the first": 0, "a later one": 1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, plan, func(t *testing.T, s *stream) {
				pieces := 0
				s.here.s.cross = func() bool { pieces++; return pieces > at }
				b := s.here.send(large)
				s.there.recv()
				s.run()
				require.Len(t, s.here.s.crossing, 1)
				s.here.s.crossing[0].on <- codec.ErrTooLarge
				<-b.done
				require.ErrorIs(t, b.err, codec.ErrTooLarge)
				s.here.s.cross, s.here.s.crossing = nil, nil
				s.run()
				require.EqualValues(t, at*(large+overhead), s.here.end().Account().Sent, "a Block that has not begun costs nothing")
				require.Zero(t, s.load().Large)
				require.NoError(t, s.here.Send(background, nil), "the pipe remains usable")
				s.finish()
			})
		})
	}
}

func TestDivided_OthersWaitBehind(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		first := s.here.send(large)
		s.run()
		small := s.here.send(0)
		second := s.here.send(2*large - 1000)
		_, err := s.here.Post(nil)
		require.ErrorIs(t, err, codec.ErrOverloaded)
		s.run()
		require.False(t, small.isDone(), "the order is kept")
		first.cancel()
		for range 3 {
			s.there.recv()
			s.run()
		}
		require.True(t, small.isDone())
		require.True(t, second.isDone())
		require.NoError(t, second.err)
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestDivided_AfterUnderWay(t *testing.T) {
	for name, end := range map[string]error{"it is sent": nil, "it is refused": codec.ErrTooLarge, "it is dropped": errDrop} {
		t.Run(name, func(t *testing.T) {
			bubble(t, plan, func(t *testing.T, s *stream) {
				s.here.s.cross = func() bool { return true }
				first := s.here.send(0)
				synctest.Wait()
				second := s.here.send(large)
				s.run()
				require.Len(t, s.here.s.crossing, 1, "no piece goes before the Block that is under way")
				s.here.s.cross = nil
				s.here.s.crossing[0].on <- end
				<-first.done
				s.here.s.crossing = nil
				for !second.isDone() {
					s.there.recv()
					s.run()
				}
				require.NoError(t, second.err)
				s.finish()
			})
		})
	}
}

func TestDivided_ManySendersAndReceivers(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		var all []*doing
		for _, n := range []int{large, 0, 2*large - 1, 100, 1, large - 1, early - overhead, early, 700, 3 * early} {
			all = append(all, s.here.send(n), s.there.recv())
			if len(all)%3 == 0 {
				s.run()
			}
		}
		s.run()
		for _, d := range all {
			require.True(t, d.isDone())
			require.NoError(t, d.err)
		}
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestPost_NeverDivides(t *testing.T) {
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
		require.Zero(t, s.here.end().Account().Sent, "and costs nothing")
		b := do(lossy)
		s.run()
		require.False(t, b.isDone(), "it was spared, and waits as any other")
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.Equal(t, 2, judged, "once each")
		require.NoError(t, s.here.Send(background, make([]byte, early-overhead), pipe.WithLoss(64)))
		require.Equal(t, 2, judged, "what fits is not judged")
		s.finish()
	})
}

func TestPart_BeyondLimit(t *testing.T) {
	_, end, _ := running(t, flow.NewBudget(&plan))
	require.Equal(t, piping.Accepted, end.BlockBegins(large))
	granted, v := end.PartArrived(1024)
	require.Equal(t, piping.Accepted, v)
	require.EqualValues(t, early-overhead, granted, "the receiver needs no more memory yet")
	_, v = end.PartArrived(early - overhead)
	require.Equal(t, piping.Accepted, v)
	_, v = end.PartArrived(early - overhead + 1)
	require.Equal(t, piping.Overrun, v)
}

func TestPart_WithoutWindow(t *testing.T) {
	_, end, _ := newPipe(piping.Config{})
	require.Equal(t, piping.Accepted, end.BlockBegins(large))
	granted, v := end.PartArrived(1024)
	require.Equal(t, piping.Accepted, v)
	require.Equal(t, large, granted)
	require.True(t, end.HasCredit())
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(large)))
}

func TestDivided_GivenUpAfterDrop(t *testing.T) {
	wide := plan
	wide.Elastic, wide.Room = 64<<10, 512<<10
	bubble(t, wide, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, make([]byte, 1000)))
		b := s.here.send(large)
		synctest.Wait()
		s.here.drop(0) // it has expired before it departed
		b.cancel()
		<-b.done
		s.run()
		require.EqualValues(t, large+overhead, s.here.end().Account().Sent)
		require.EqualValues(t, large+overhead, s.there.end().Account().Received)
		s.finish()
	})
}

// drop drops the queued message at i.
func (e *end) drop(i int) {
	e.mu.Lock()
	b := e.queue[i].(piping.Outgoing)
	e.queue = append(e.queue[:i:i], e.queue[i+1:]...)
	e.mu.Unlock()
	e.end().Dropped(len(b.Payload))
}

// An abandoned Block counts beyond the limit. The window still covers the Blocks in the inbox.
func TestDivided_GivenUpBesideInbox(t *testing.T) {
	wide := plan
	wide.Elastic, wide.Room = 64<<10, 512<<10
	bubble(t, wide, func(t *testing.T, s *stream) {
		limit := int(s.here.end().Account().Limit)
		kept := limit - 2*overhead - 1024
		require.NoError(t, s.here.Send(background, make([]byte, kept/2)))
		require.NoError(t, s.here.Send(background, make([]byte, kept/2-overhead)))
		b := s.here.send(large)
		s.run()
		others := make([]flow.Window, 4)
		for i := range others { // take the elastic room
			s.there.s.room.Lend(&others[i])
			s.there.s.room.Took(&others[i])
			s.there.s.room.Grow(&others[i], 1<<20, 0)
		}
		b.cancel()
		s.run()
		a := s.there.end().Account()
		require.GreaterOrEqual(t, a.Hold, a.Received-a.Taken)
		for i := range others {
			s.there.s.room.End(&others[i])
		}
		s.finish()
	})
}
