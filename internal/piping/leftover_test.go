package piping_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// answered is a call with a handler that has sent Blocks and then its result. The caller has
// received none of them.
func answered(t *testing.T, blocks int) *stream {
	s := newStream(t, plan)
	for range blocks {
		require.NoError(t, s.there.Send(background, make([]byte, 100)))
	}
	s.there.end().Close([]byte("result"))
	s.run()
	result, err := s.here.Result(background)
	require.NoError(t, err)
	require.Equal(t, "result", string(result))
	require.EqualValues(t, 1, s.here.s.terms.Left.Load())
	require.Equal(t, blocks, s.here.s.messages)
	require.Equal(t, early, s.here.s.room.Load().Windows)
	return s
}

func TestLeftover_HoldsRoomUntil(t *testing.T) {
	for name, f := range map[string]func(s *stream){
		"it is taken": func(s *stream) {
			for i := range 2 {
				require.Equal(t, 2-i, s.here.s.messages)
				b, err := s.here.Recv(background)
				require.NoError(t, err)
				require.Len(t, b.Payload, 100)
			}
			_, err := s.here.Recv(background)
			require.Equal(t, io.EOF, err)
		},
		"Stop": func(s *stream) { s.here.Stop(); s.here.Stop() },
		"Abort": func(s *stream) {
			s.here.Abort(nil)
			_, err := s.here.Recv(background)
			require.Equal(t, io.EOF, err)
		},
		"Stop after one was taken": func(s *stream) { s.here.Recv(background); s.here.Stop() },
		"it is taken in a pause": func(s *stream) {
			s.here.StopReading()
			for range 2 {
				_, err := s.here.Recv(background)
				require.NoError(t, err, "there is nothing to hold back any more")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := answered(t, 2)
				f(s)
				require.Zero(t, s.here.s.terms.Left.Load())
				require.Zero(t, s.here.s.messages)
				require.Zero(t, s.here.s.bytes)
				s.finish()
			})
		})
	}
}

func TestLeftover_Garbage(t *testing.T) {
	here, there := newSides(t, plan, 0)
	taken := make(chan int, 1)
	here.taken = taken
	func() {
		caller, callee := here.open(0)
		require.True(t, callee.begin())
		for range 3 {
			require.Equal(t, piping.Accepted, caller.end().BlockArrived(sized(0)))
		}
		require.True(t, caller.end().CloseArrived(nil, nil))
		callee.Abort(nil)
		there.announced, there.wire = nil, nil
	}()
	require.EqualValues(t, 1, here.terms.Left.Load())
	require.Equal(t, 3, collected(t, taken))
	free := func() bool { return here.room.Load() == flow.Load{} && here.terms.Left.Load() == 0 }
	require.Eventually(t, free, 2*time.Minute, time.Millisecond)
}

// The call ends while a Block waits for the session.
func TestSend_OutcomeDuringPort(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.here.s.cross = func() bool { return true }
		b := s.here.send(0)
		synctest.Wait()
		s.here.Abort(codec.ErrUnavailable)
		s.here.s.crossing[0].on <- codec.ErrTooLarge
		<-b.done
		require.ErrorIs(t, b.err, codec.ErrUnavailable, "the end of the call came first")
		s.here.s.crossing = nil
		s.finish()
	})
}

func TestBegin_AfterLastBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newSides(t, plan, 0)
		s := &stream{t: t}
		s.here, s.there = a.open(0)
		require.NoError(t, s.here.CloseSend())
		s.run()
		require.True(t, s.there.begin())
		require.Zero(t, b.room.Load().Windows, "a handler without Blocks to come needs no window")
		s.finish()
	})
}
