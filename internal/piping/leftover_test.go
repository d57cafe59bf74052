package piping_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
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
	require.EqualValues(t, 1, s.here.s.terms.Left())
	require.Equal(t, blocks, s.here.s.messages)
	require.Equal(t, early, loadOf(s.here.s.room).Windows)
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
				require.Zero(t, s.here.s.terms.Left())
				require.Zero(t, s.here.s.messages)
				require.Zero(t, s.here.s.bytes)
				s.finish()
			})
		})
	}
}

func TestLeftover_ContextEnds(t *testing.T) {
	for name, takesFirst := range map[string]bool{"after the result was taken": true, "before the result is taken": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream(t, plan)
				ctx, cancel := context.WithCancel(background)
				s.here.ctx = ctx
				require.NoError(t, s.there.Send(background, make([]byte, 100)))
				s.there.end().Close(nil)
				s.run()
				if takesFirst {
					_, err := s.here.Result(background)
					require.NoError(t, err)
				}
				require.Equal(t, 1, s.here.s.terms.Left())
				cancel()
				synctest.Wait()
				if !takesFirst {
					require.Equal(t, 1, s.here.s.terms.Left(), "the application may still want them")
					_, err := s.here.Result(background)
					require.NoError(t, err)
				}
				require.Zero(t, s.here.s.terms.Left())
				_, err := s.here.Recv(background)
				require.ErrorIs(t, err, codec.ErrCanceled)
				require.ErrorContains(t, err, "the context of Open has ended")
				s.finish()
			})
		})
	}
}

func TestLeftover_ForgetsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStream(t, plan)
		ctx, cancel := context.WithCancel(background)
		s.here.ctx = ctx
		require.NoError(t, s.there.Send(background, make([]byte, 100)))
		s.there.end().Close(nil)
		s.run()
		_, err := s.here.Recv(background)
		require.NoError(t, err)
		cancel()
		_, err = s.here.Recv(background)
		require.Equal(t, io.EOF, err, "all Blocks were taken before")
		s.finish()
	})
}

func TestLeftover_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answered(t, 2)
		fakeclock.Sleep(piping.LeftIdle - time.Second)
		dropped, next := s.here.s.terms.DropLeft()
		require.Equal(t, time.Second, next)
		require.False(t, dropped, "a program may take the result first, and the Blocks then")
		_, err := s.here.Recv(background)
		require.NoError(t, err)
		fakeclock.Sleep(2 * time.Second)
		dropped, _ = s.here.s.terms.DropLeft()
		require.False(t, dropped, "one was taken meanwhile")
		fakeclock.Sleep(piping.LeftIdle)
		require.Equal(t, 1, s.here.s.terms.Left(), "as long as no other message needs their room")
		dropped, _ = s.here.s.terms.DropLeft()
		require.True(t, dropped)
		require.Zero(t, s.here.s.terms.Left())
		require.Zero(t, s.here.s.bytes)
		require.Equal(t, load{}, loadOf(s.here.s.room))
		_, err = s.here.Recv(background)
		require.ErrorIs(t, err, codec.ErrStalled)
		require.ErrorContains(t, err, "receive all Blocks")
		s.finish()
	})
}

// A call ends with a large Block whose reader leaves at the same moment.
func TestLeftover_DebtMoves(t *testing.T) {
	for name, free := range map[string]int{"to the room for running calls": large, "nowhere": 0} {
		t.Run(name, func(t *testing.T) {
			left := 0
			for range 50 {
				bubble(t, plan, func(t *testing.T, s *stream) {
					b := s.there.send(large)
					s.run()
					r := s.here.recv()
					synctest.Wait()
					s.here.StopReading() // until the call ends
					s.run()
					<-b.done
					require.Positive(t, loadOf(s.here.s.room).Large)
					s.here.s.reserved = free
					s.there.end().Close(nil)
					for s.there.depart() {
					}
					r.cancel()
					for s.there.s.deliver() {
					}
					<-r.done
					flow.Grant(s.here.s.room.Evict()) // another pipe needs the room
					require.Zero(t, loadOf(s.here.s.room).Large)
					if r.err != nil {
						left++
						b, err := s.here.Recv(background)
						require.Equal(t, free > 0, err == nil)
						require.Equal(t, free > 0, len(b.Payload) == large)
						if free == 0 {
							require.ErrorIs(t, err, codec.ErrStalled)
						}
					}
					require.Equal(t, free, s.here.s.reserved)
					s.finish()
				})
			}
			require.Positive(t, left)
		})
	}
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
		require.Zero(t, loadOf(b.room).Windows, "a handler without Blocks to come needs no window")
		s.finish()
	})
}
