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

func TestAllow_ReturnedAtEnd(t *testing.T) {
	for name, f := range map[string]func(s *stream){
		"the receiver stops":            func(s *stream) { s.there.Stop() },
		"the receiver aborts":           func(s *stream) { s.there.Abort(nil) },
		"the receiver closes":           func(s *stream) { s.there.end().Close(nil) },
		"the sender aborts":             func(s *stream) { s.here.Abort(nil) },
		"the sender ends its direction": func(s *stream) { require.NoError(t, s.here.CloseSend()) },
	} {
		for stage, steps := range map[string]func(s *stream){
			"the Ask has come":             func(s *stream) { s.run() },
			"the Allow is about to depart": func(s *stream) { s.run(); s.there.recv(); synctest.Wait() },
			"the Allow is under way":       func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.s.tell() },
			"the Block is about to depart": func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.s.tell(); s.there.s.deliver() },
			"the Block is under way": func(s *stream) {
				s.run()
				s.there.recv()
				synctest.Wait()
				s.there.s.tell()
				s.there.s.deliver()
				synctest.Wait()
				s.here.depart()
			},
			"the Block waits to be received": func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.StopReading(); s.run() },
		} {
			t.Run(name+"/"+stage, func(t *testing.T) {
				bubble(t, plan, func(t *testing.T, s *stream) {
					s.here.send(large)
					steps(s)
					f(s)
					s.run()
					s.there.StartReading()
					s.run()
					require.Zero(t, s.load().Large)
					require.Zero(t, s.there.s.overrun, "the allowed Block may arrive, and is discarded")
					s.finish()
				})
			})
		}
	}
}

func TestClaim_WithdrawnAtEnd(t *testing.T) {
	two := plan
	two.Workers, two.Callers = 2, 2
	for name, f := range map[string]func(s *stream){
		"the receiver stops":            func(s *stream) { s.there.Stop() },
		"the receiver aborts":           func(s *stream) { s.there.Abort(nil) },
		"the sender aborts":             func(s *stream) { s.here.Abort(nil) },
		"the sender ends its direction": func(s *stream) { require.NoError(t, s.here.CloseSend()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, two, func(t *testing.T, s *stream) {
				var others flow.Waiter
				others.Bytes, others.Granted = two.Large, func(bool) {}
				require.True(t, s.there.s.room.Allow(&others))
				s.here.send(large)
				s.run()
				s.there.recv()
				s.run()
				require.Equal(t, 1, s.load().Asking)
				f(s)
				s.run()
				require.Zero(t, s.load().Asking)
				flow.Grant(s.there.s.room.Disallow(others.Bytes))
				s.finish()
			})
		})
	}
}

func TestAllow_TakenAfterEnd(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		r := s.there.recv()
		synctest.Wait()
		s.there.StopReading() // so that the end comes before it is taken
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, s.here.CloseSend())
		s.run()
		require.Positive(t, s.load().Large)
		s.there.StartReading()
		synctest.Wait()
		require.Len(t, r.block.Payload, large)
		require.Zero(t, s.load().Large, "the handler has taken it, and continues")
		s.finish()
	})
}

func TestAllow_ReceiverLeft(t *testing.T) {
	leaves := func(t *testing.T, s *stream) {
		r := s.there.recv()
		synctest.Wait()
		s.there.s.tell()
		r.cancel()
		<-r.done
		require.ErrorIs(t, r.err, codec.ErrCanceled)
		require.Zero(t, s.load().Large, "so that other pipes may have the room")
	}
	arrives := func(t *testing.T, s *stream, b *doing) {
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, b.err)
		messages, _ := s.there.end().Waiting()
		require.Equal(t, 1, messages)
		r := s.there.recv()
		s.run()
		require.NoError(t, r.err)
		require.Len(t, r.block.Payload, large)
	}
	t.Run("into spare room", func(t *testing.T) {
		spare := plan
		spare.Spare, spare.Room = 2*large, 16*large
		bubble(t, spare, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			leaves(t, s)
			require.Greater(t, s.load().Windows, large)
			require.EqualValues(t, early+spare.Spare/8, s.here.end().Account().Limit)
			arrives(t, s, b)
			s.finish()
		})
	})
	t.Run("into shelter", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.there.s.shelter = large
			b := s.here.send(large)
			s.run()
			leaves(t, s)
			require.Less(t, s.there.s.shelter, large)
			arrives(t, s, b)
			require.Equal(t, large, s.there.s.shelter, "given back when it was taken")
			s.finish()
		})
	})
	t.Run("nowhere", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.here.send(large)
			s.run()
			leaves(t, s)
			require.ErrorIs(t, s.there.Err(), codec.ErrStalled)
			s.run()
			require.ErrorIs(t, s.here.Err(), codec.ErrStalled)
			s.finish()
		})
	})
	t.Run("not if another receiver waits", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			other := s.there.recv()
			r := s.there.recv()
			synctest.Wait()
			s.there.s.tell()
			r.cancel()
			<-r.done
			require.Positive(t, s.load().Large)
			s.run()
			require.True(t, b.isDone())
			require.Len(t, other.block.Payload, large)
			s.finish()
		})
	})
	t.Run("nowhere, and the Allow was not sent", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			r := s.there.recv()
			synctest.Wait()
			require.Positive(t, s.load().Large)
			r.cancel()
			<-r.done
			require.Zero(t, s.load().Large)
			s.run()
			require.False(t, b.isDone(), "nothing was allowed")
			r = s.there.recv()
			s.run()
			require.True(t, b.isDone(), "and is when a receiver waits again")
			require.Len(t, r.block.Payload, large)
			s.finish()
		})
	})
}

// shelter sends a Block to an end. The application there asks for the Block and stops waiting.
func shelter(s *stream, from, to *end) {
	to.s.shelter = large
	from.send(large)
	s.run()
	r := to.recv()
	synctest.Wait()
	to.s.tell()
	r.cancel()
	s.run()
	require.Less(s.t, to.s.shelter, large)
}

func TestShelter_UntilCallEnds(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		shelter(s, s.here, s.there)
		s.here.Abort(nil)
		s.run()
		require.Equal(t, large, s.there.s.shelter)
		s.finish()
	})
}

func TestShelter_UntilTaken(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		shelter(s, s.there, s.here)
		s.there.end().Close(nil)
		s.run()
		require.Less(t, s.here.s.shelter, large, "the call is over, and its Block is still there")
		b, err := s.here.Recv(background)
		require.NoError(t, err)
		require.Len(t, b.Payload, large)
		require.Equal(t, large, s.here.s.shelter)
		s.finish()
	})
}

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

func TestStop_AfterLastBlock(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.here.send(large)
		s.run()
		s.there.recv()
		synctest.Wait()
		s.there.StopReading()
		s.run()
		require.NoError(t, s.here.CloseSend())
		s.run()
		require.Positive(t, s.load().Large)
		require.Equal(t, 1, s.there.s.messages)
		s.there.Stop()
		require.Zero(t, s.there.s.messages)
		require.Equal(t, flow.Load{}, s.load())
		s.there.StartReading()
		_, err := s.there.Recv(background)
		require.Equal(t, io.EOF, err)
		s.finish()
	})
}
