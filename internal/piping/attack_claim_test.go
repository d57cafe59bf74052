package piping_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// runAll sends and delivers all messages of streams between the same sides.
func runAll(all []*stream) {
	for range 3 {
		for _, s := range all {
			s.run()
		}
	}
}

// finishAll ends all streams.
func finishAll(all []*stream) {
	for _, s := range all {
		s.here.Abort(nil)
		s.there.Abort(nil)
	}
	runAll(all)
	all[0].finish()
}

// An application receives with a short deadline, again and again. The Block for this application
// has begun before the Blocks for two other applications, which receive without a deadline.
func TestClaim_KeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := streams(t, 3, 2*large+overhead)
		sent := all[0].here.send(2 * large)
		all[0].run()
		next := func(i int) (recv *doing) {
			all[i].here.send(2 * large)
			all[i].run()
			recv = all[i].there.recv()
			synctest.Wait()
			return recv
		}
		busy := []*doing{nil, next(1), next(2)}
		for round := range 10 {
			polls := all[0].there.recv()
			synctest.Wait()
			i := 1 + round%2
			all[i].run()
			require.True(t, busy[i].isDone(), "it was its turn")
			busy[i] = next(i)
			polls.cancel() // its deadline
			<-polls.done
			synctest.Wait()
			all[0].run()
		}
		done := sent.isDone()
		finishAll(all)
		require.True(t, done, "its Block began first, and 10 others have overtaken it")
	})
}

// An application stops receiving while the last part of its Block and the result arrive. The
// application keeps the pipe, and never takes the Block.
func TestDebt_LeftAtEnd(t *testing.T) {
	for range 20 {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.here.s.reserved = 1 << 20
			b := s.there.send(large)
			s.run()
			r := s.here.recv()
			synctest.Wait()
			require.True(t, s.here.s.tell())
			require.True(t, s.here.s.deliver())
			<-b.done
			s.there.end().Close(nil)
			for s.there.depart() {
			}
			r.cancel()
			for s.there.s.deliver() {
			}
			<-r.done
			held := loadOf(s.here.s.room).Large
			if r.err != nil {
				_, err := s.here.Recv(background)
				require.NoError(t, err)
			}
			s.finish()
			require.Zero(t, held, "the other pipes wait for it")
		})
	}
}

// Applications stop receiving, one after the other, and no room is left for their Blocks. The pipes
// end before another one needs the room: nothing of them stays.
func TestDebt_IdleUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := streams(t, 5, large+overhead)
		for _, s := range all {
			s.here.send(large)
			s.run()
			s.there.recv()
			synctest.Wait()
			require.Positive(t, s.load().Large)
			s.there.StopReading()
			s.run()
			require.Positive(t, s.load().Large, "there is no other room")
			s.here.Abort(nil)
			s.there.Abort(nil)
			s.run()
			require.Zero(t, s.load().Large)
		}
		require.Empty(t, all[0].there.s.room.Evict())
		finishAll(all)
	})
}
