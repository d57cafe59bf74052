package piping_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestAsk_ManySendersAndReceivers(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		var all []*doing
		for _, n := range []int{large, 0, 2 * large, 100, 1, large - 1, early - overhead, early, 700, 3 * early} {
			if n+overhead <= plan.Large {
				all = append(all, s.here.send(n), s.there.recv())
			}
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

func TestAsk_GivenUpFreesOthers(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		first := s.here.send(large)
		s.run()
		small := s.here.send(0)
		s.run()
		second := s.here.send(2*large - 1000)
		s.run()
		require.False(t, small.isDone(), "the order is kept")
		first.cancel()
		s.run()
		require.True(t, small.isDone())
		require.False(t, second.isDone())
		require.Equal(t, 1, s.here.asks, "it stands until it is answered")
		for range 2 {
			s.there.recv()
			s.run()
		}
		require.True(t, second.isDone())
		require.NoError(t, second.err)
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestAsk_ReusedAfterGivingUp(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		for range 3 {
			b.cancel()
			<-b.done
			b = s.here.send(large)
			s.run()
		}
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, b.err)
		require.Equal(t, 1, s.here.asks)
		require.Zero(t, s.here.back)
		s.finish()
	})
}

func TestAsk_FollowedByBlock(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		first := s.here.send(large)
		s.run()
		first.cancel()
		<-first.done
		require.NoError(t, s.here.Send(background, []byte("small")), "it fits, and is sent while the Ask stands")
		second := s.here.send(large - 1000)
		s.run()
		s.there.recv()
		s.run()
		s.there.recv()
		s.run()
		require.True(t, second.isDone())
		require.NoError(t, second.err)
		require.Zero(t, s.there.s.overrun)
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestAsk_AllowOvertaken(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		first := s.here.send(large)
		s.run()
		first.cancel()
		<-first.done
		require.NoError(t, s.here.Send(background, []byte("small")), "it fits, and is sent while the Ask stands")
		s.here.depart()
		small := s.there.recv()
		synctest.Wait()
		require.Positive(t, s.load().Large, "an Allow waits to depart")
		s.here.s.deliver()
		<-small.done
		require.Zero(t, s.load().Large)
		second := s.here.send(large)
		s.there.recv()
		s.run()
		require.True(t, second.isDone(), "the Ask stands, and has to be answered before the next one")
		s.finish()
	})
}

func TestAllow_NotForLaterBlocks(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		b.cancel()
		<-b.done
		first := s.there.recv()
		synctest.Wait()
		s.there.s.tell()
		for range 2 {
			require.NoError(t, s.here.Send(background, []byte("small")))
			s.here.depart()
		}
		s.there.StopReading()
		for s.here.s.deliver() {
		}
		synctest.Wait()
		require.Positive(t, s.load().Large)
		s.there.StartReading()
		<-first.done
		require.Zero(t, s.load().Large, "the first Block has used it up, and the second has its place in the window")
		s.finish()
	})
}

func TestAllow_UsedByFirstBlock(t *testing.T) {
	room := flow.NewRoom(&plan)
	p, end, _ := running(t, room)
	require.True(t, end.AskArrived(0, 10_000))
	received := make(chan error)
	go func() { _, err := p.Recv(background); received <- err }()
	require.Eventually(t, func() bool { return room.Load().Large > 0 }, 2*time.Minute, time.Millisecond)
	p.StopReading()
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(10)))
	require.Equal(t, piping.Overrun, end.BlockArrived(sized(5_000)), "the Allow is void behind it")
	p.StartReading()
	require.NoError(t, <-received)
	require.Zero(t, room.Load().Large)
}

func TestAsk_WrongSentTotal(t *testing.T) {
	_, end, _ := running(t, flow.NewRoom(&plan))
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(10)))
	require.False(t, end.AskArrived(0, 10_000))
	require.False(t, end.AskArrived(overhead+11, 10_000))
	require.True(t, end.AskArrived(overhead+10, 10_000))
}

func TestAsk_MoreThanEver(t *testing.T) {
	two := plan
	two.Workers = 2
	synctest.Test(t, func(t *testing.T) {
		room := flow.NewRoom(&two)
		greedy, greedyEnd, _ := running(t, room)
		modest, modestEnd, port := running(t, room)
		told(modestEnd)
		for _, p := range []*pipe.Pipe{greedy, modest} {
			go p.Recv(background)
		}
		synctest.Wait()
		require.True(t, greedyEnd.AskArrived(0, 1<<53-1))
		require.True(t, modestEnd.AskArrived(0, 10_000))
		require.Equal(t, []message.Control{message.Allow{Total: 10_000}}, told(modestEnd))
		require.Zero(t, room.Load().Asking)
		require.Positive(t, port.news)
		greedy.Abort(nil)
		modest.Abort(nil)
		require.Equal(t, flow.Load{}, room.Load())
	})
}
