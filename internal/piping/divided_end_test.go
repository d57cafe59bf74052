package piping_test

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
)

// stages are the stages of a large Block from its first piece to its receiver.
var stages = map[string]func(s *stream){
	"its window is full":          func(s *stream) { s.run() },
	"its credit is about to go":   func(s *stream) { s.run(); s.there.recv(); synctest.Wait() },
	"its credit is under way":     func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.s.tell() },
	"its rest is about to depart": func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.s.tell(); s.there.s.deliver() },
	"its rest is under way": func(s *stream) {
		s.run()
		s.there.recv()
		synctest.Wait()
		s.there.s.tell()
		s.there.s.deliver()
		synctest.Wait()
		s.here.depart()
	},
	"the Block waits to be received": func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.StopReading(); s.run() },
}

func TestDivided_PipeEnds(t *testing.T) {
	for name, f := range map[string]func(s *stream){
		"the receiver stops":            func(s *stream) { s.there.Stop() },
		"the receiver aborts":           func(s *stream) { s.there.Abort(nil) },
		"the receiver closes":           func(s *stream) { s.there.end().Close(nil) },
		"the sender aborts":             func(s *stream) { s.here.Abort(nil) },
		"the sender ends its direction": func(s *stream) { require.NoError(t, s.here.CloseSend()) },
	} {
		for stage, steps := range stages {
			t.Run(name+"/"+stage, func(t *testing.T) {
				bubble(t, plan, func(t *testing.T, s *stream) {
					b := s.here.send(large)
					steps(s)
					f(s)
					s.run()
					require.True(t, b.isDone())
					s.there.StartReading()
					s.run()
					require.Zero(t, s.load().Large)
					require.Zero(t, s.there.s.overrun, "late parts are discarded")
					s.finish()
				})
			})
		}
	}
}

func TestClaim_WithdrawnAtEnd(t *testing.T) {
	two := plan
	two.Workers, two.Callers = 2, 2
	for name, f := range map[string]func(s *stream, b *doing){
		"the receiver stops":            func(s *stream, _ *doing) { s.there.Stop() },
		"the receiver aborts":           func(s *stream, _ *doing) { s.there.Abort(nil) },
		"the sender gives up":           func(_ *stream, b *doing) { b.cancel() },
		"the sender aborts":             func(s *stream, _ *doing) { s.here.Abort(nil) },
		"the sender ends its direction": func(s *stream, _ *doing) { require.NoError(t, s.here.CloseSend()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, two, func(t *testing.T, s *stream) {
				b, free := s.claim()
				f(s, b)
				s.run()
				require.Zero(t, s.load().Asking)
				free()
				s.finish()
			})
		})
	}
}

func TestDebt_TakenAfterEnd(t *testing.T) {
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

// leave has the receiver leave when the credit for the whole Block is under way.
func (s *stream) leave() {
	r := s.there.recv()
	synctest.Wait()
	s.there.s.tell()
	r.cancel()
	<-r.done
	require.ErrorIs(s.t, r.err, codec.ErrCanceled)
}

func TestDebt_ReceiverLeft(t *testing.T) {
	arrives := func(t *testing.T, s *stream, b *doing) {
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, b.err)
		require.Zero(t, s.load().Large, "so that other pipes may have the room")
		messages, _ := s.there.end().Waiting()
		require.Equal(t, 1, messages)
		r := s.there.recv()
		s.run()
		require.NoError(t, r.err)
		require.Len(t, r.block.Payload, large)
	}
	t.Run("into elastic room", func(t *testing.T) {
		spare := plan
		spare.Elastic, spare.Room = 2*large, 16*large
		bubble(t, spare, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			s.leave()
			require.Zero(t, s.load().Large, "at once")
			require.Greater(t, s.load().Windows, large)
			arrives(t, s, b)
			s.finish()
		})
	})
	t.Run("into the room for running calls", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.there.s.reserved = large
			b := s.here.send(large)
			s.run()
			s.leave()
			require.Positive(t, s.load().Large, "until the Block is complete")
			s.run()
			require.Less(t, s.there.s.reserved, large)
			arrives(t, s, b)
			require.Equal(t, large, s.there.s.reserved, "given back when it was taken")
			s.finish()
		})
	})
	t.Run("nowhere", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.here.send(large)
			s.run()
			s.leave()
			require.NoError(t, s.there.Err(), "the Block may still be given up")
			s.run()
			require.NoError(t, s.there.Err(), "the receiver may come back")
			others := flow.Waiter{Bytes: plan.Large, Granted: func(bool) {}}
			require.False(t, s.there.s.room.Acquire(flow.Large, &others))
			flow.Grant(s.there.s.room.Evict())
			s.run()
			require.ErrorIs(t, s.there.Err(), codec.ErrStalled)
			require.ErrorIs(t, s.here.Err(), codec.ErrStalled)
			flow.Grant(s.there.s.room.Release(flow.Large, others.Bytes))
			s.finish()
		})
	})
	t.Run("nowhere, and the sender gives up", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			s.leave()
			b.cancel()
			s.run()
			require.NoError(t, s.there.Err())
			require.Zero(t, s.load().Large)
			s.finish()
		})
	})
	t.Run("not if another receiver waits", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			other := s.there.recv()
			s.leave()
			s.run()
			require.True(t, b.isDone())
			require.Len(t, other.block.Payload, large)
			s.finish()
		})
	})
	t.Run("a receiver returns in time", func(t *testing.T) {
		bubble(t, plan, func(t *testing.T, s *stream) {
			b := s.here.send(large)
			s.run()
			s.leave()
			r := s.there.recv()
			s.run()
			require.True(t, b.isDone())
			require.Len(t, r.block.Payload, large)
			s.finish()
		})
	})
}

// reserve sends a Block to an end. The application there waits for the Block and leaves.
func reserve(s *stream, from, to *end) {
	to.s.reserved = large
	from.send(large)
	s.run()
	r := to.recv()
	synctest.Wait()
	to.s.tell()
	r.cancel()
	s.run()
	require.Less(s.t, to.s.reserved, large)
}

func TestReserved_UntilCallEnds(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		reserve(s, s.here, s.there)
		s.here.Abort(nil)
		s.run()
		require.Equal(t, large, s.there.s.reserved)
		s.finish()
	})
}

func TestReserved_UntilTaken(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		reserve(s, s.there, s.here)
		s.there.end().Close(nil)
		s.run()
		require.Less(t, s.here.s.reserved, large, "the call is over, and its Block is still there")
		b, err := s.here.Recv(background)
		require.NoError(t, err)
		require.Len(t, b.Payload, large)
		require.Equal(t, large, s.here.s.reserved)
		s.finish()
	})
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
		require.Equal(t, load{}, s.load())
		s.there.StartReading()
		_, err := s.there.Recv(background)
		require.Equal(t, io.EOF, err)
		s.finish()
	})
}

// A stream holds the room for large Blocks, and releases it. The next stream gets it.
func TestDebt_NextStream(t *testing.T) {
	for name, release := range map[string]func(s *stream, b, r *doing){
		"the Block is taken":            func(*stream, *doing, *doing) {},
		"the sender gives up":           func(_ *stream, b, _ *doing) { b.cancel() },
		"the sender gives up later":     func(s *stream, b, _ *doing) { s.there.s.tell(); b.cancel() },
		"the receiver leaves":           func(_ *stream, _, r *doing) { r.cancel() },
		"the receiver leaves later":     func(s *stream, _, r *doing) { s.there.s.tell(); r.cancel() },
		"the receiver leaves at last":   func(s *stream, _, r *doing) { s.there.s.tell(); s.there.s.deliver(); r.cancel() },
		"the receiver stops":            func(s *stream, _, _ *doing) { s.there.Stop() },
		"the caller aborts":             func(s *stream, _, _ *doing) { s.here.Abort(nil) },
		"the handler aborts":            func(s *stream, _, _ *doing) { s.there.Abort(nil) },
		"the handler returns":           func(s *stream, _, _ *doing) { s.there.end().Close(nil) },
		"the caller aborts at the last": func(s *stream, _, _ *doing) { s.there.s.tell(); s.there.s.deliver(); s.here.Abort(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := streams(t, 2, large+overhead)
				first, second := all[0], all[1]
				first.there.s.reserved = 1 << 20
				b := first.here.send(large)
				first.run()
				r := first.there.recv()
				synctest.Wait()
				next := second.here.send(large)
				second.run()
				taken := second.there.recv()
				synctest.Wait()
				require.Positive(t, first.load().Large)
				require.Equal(t, 1, first.load().Asking)

				release(first, b, r)
				for range 3 {
					first.run()
					second.run()
				}
				require.True(t, next.isDone())
				require.NoError(t, next.err)
				require.True(t, taken.isDone())
				require.Len(t, taken.block.Payload, large)
				second.here.Abort(nil)
				second.there.Abort(nil)
				second.run()
				first.finish()
			})
		})
	}
}

// A call ends with a Block for a waiting receiver, which may not have run yet.
func TestDebt_TakenAtEnd(t *testing.T) {
	for range 50 {
		bubble(t, plan, func(t *testing.T, s *stream) {
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
			for s.there.s.deliver() {
			}
			<-r.done
			require.Len(t, r.block.Payload, large)
			require.Zero(t, loadOf(s.here.s.room).Large)
			s.finish()
		})
	}
}
