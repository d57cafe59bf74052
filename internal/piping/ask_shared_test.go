package piping_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// two returns two streams between the same sides, which share room for one large Block.
func two(t *testing.T) (first, second *stream) {
	shared := plan
	shared.Workers, shared.Callers, shared.Large = 2, 2, large+overhead
	first = newStream(t, shared)
	second = &stream{t: t}
	second.here, second.there = first.here.s.open(0)
	require.True(t, second.there.begin())
	second.run()
	return first, second
}

// A stream holds the room for large Blocks, and releases it. The next stream gets it.
func TestAllow_NextStream(t *testing.T) {
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
				first, second := two(t)
				first.there.s.shelter = 1 << 20
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

// A call ends with a Block for a waiting receiver, which may not have run yet.
func TestAllow_TakenAtEnd(t *testing.T) {
	for range 50 {
		bubble(t, plan, func(t *testing.T, s *stream) {
			s.there.send(large)
			s.run()
			r := s.here.recv()
			synctest.Wait()
			require.True(t, s.here.s.tell())
			require.True(t, s.here.s.deliver())
			synctest.Wait()
			s.there.end().Close(nil)
			for s.there.depart() {
			}
			for s.there.s.deliver() {
			}
			<-r.done
			require.Len(t, r.block.Payload, large)
			require.Zero(t, s.here.s.room.Load().Large)
			s.finish()
		})
	}
}

// A Block that may still reach the session before an Ask ends in some way, and the Ask is sent.
func TestAsk_AfterUnderWay(t *testing.T) {
	for name, end := range map[string]error{"it is sent": nil, "it is refused": codec.ErrTooLarge, "it is dropped": errDrop} {
		t.Run(name, func(t *testing.T) {
			bubble(t, plan, func(t *testing.T, s *stream) {
				s.here.s.cross = func() bool { return true }
				first := s.here.send(0)
				synctest.Wait()
				second := s.here.send(large)
				s.run()
				require.Zero(t, s.here.asks)
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

// An Ask arrives after a Credit that covers its Block was sent.
func TestAsk_WithinWindow(t *testing.T) {
	wide := plan
	wide.Spare, wide.Room = 8*early, 64*early // so that the window may double
	bubble(t, wide, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, make([]byte, s.here.end().Account().Limit-overhead)))
		require.True(t, s.here.depart())
		require.True(t, s.here.s.deliver())
		s.here.send(early)
		synctest.Wait()
		require.True(t, s.here.depart(), "the Ask")
		<-s.there.recv().done
		require.True(t, s.there.s.tell(), "the Credit")
		r := s.there.recv()
		synctest.Wait()
		require.True(t, s.here.s.deliver())
		require.Zero(t, s.load().Large, "the window suffices")
		s.run()
		require.True(t, r.isDone())
		s.finish()
	})
}
