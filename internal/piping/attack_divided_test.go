package piping_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// The application pauses a pipe while its Block arrives. Another pipe needs the room of the Block.
func TestDebt_NextStreamBesidePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := streams(t, 2, large+overhead)
		first, second := all[0], all[1]
		first.there.s.reserved = 1 << 20
		b := first.here.send(large)
		first.run()
		r := first.there.recv()
		synctest.Wait()
		require.Positive(t, first.load().Large)
		first.there.StopReading()
		first.run()
		require.True(t, b.isDone())
		require.False(t, r.isDone())

		next := second.here.send(large)
		second.run()
		taken := second.there.recv()
		for range 3 {
			first.run()
			second.run()
		}
		done := next.isDone() && taken.isDone()
		first.there.StartReading()
		second.here.Abort(nil)
		second.there.Abort(nil)
		second.run()
		first.finish()
		require.True(t, done, "the paused pipe keeps the room from others")
	})
}

// A sender waits for credit, and then posts a Block. Meanwhile a large Block of another sender is
// under way.
func TestDivided_AwaitCreditBeside(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		pieces := 0
		s.here.s.cross = func() bool { pieces++; return pieces == 2 } // which waits for the session
		b := s.here.send(100_000)
		s.there.recv()
		s.run()
		require.False(t, b.isDone())
		tries, posted := 0, error(nil)
		other := do(func(ctx context.Context) (_ pipe.Block, err error) {
			for ; tries < 1000; tries++ {
				if _, err = s.here.AwaitCredit(ctx); err != nil {
					return pipe.Block{}, err
				}
				if _, posted = s.here.Post(make([]byte, 100)); posted == nil {
					return pipe.Block{}, nil
				}
			}
			return pipe.Block{}, posted
		})
		synctest.Wait()
		waits := !other.isDone()
		s.here.s.crossing[0].on <- nil
		s.run()
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.True(t, other.isDone())
		s.finish()
		require.True(t, waits, "AwaitCredit has returned at once %d times, and each time Post: %v", tries, posted)
		require.NoError(t, other.err)
		require.Zero(t, tries)
	})
}

// A stream whose call waits for a worker gets no credit, even after its peer has given up a Block.
func TestDivided_BeforeTheHandler(t *testing.T) {
	room := flow.NewBudget(&flow.Plan{Room: 1 << 20, Window: early, Workers: 1, Callers: 1, Elastic: 128 << 10, Extra: 64 << 10, Large: 1 << 20})
	var h flow.Window
	ok, _ := room.TakeExtra(&h, 30_000, nil)
	require.True(t, ok)
	_, end, port := newPipe(piping.Config{Granted: early + 30_000, Hold: h, Terms: &piping.Terms{Budget: room, Usual: 512 << 10}})
	require.Equal(t, piping.Accepted, end.BlockBegins(20_000))
	end.PartArrived(1024)
	end.BlockAbandoned()
	require.Equal(t, piping.Accepted, end.BlockBegins(20_000))
	end.PartArrived(1024)
	require.Zero(t, port.news)
	require.EqualValues(t, early+30_000, end.Account().Granted)
	end.Abort(nil)
}
