package piping_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// bubble is a test of a stream in a bubble.
func bubble(t *testing.T, plan limits.Plan, f func(t *testing.T, s *stream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newStream(t, plan)) })
}

const large = 50_000

func TestABlockThatDoesNotFitIsAllowedWhenTheReceiverWaitsAndHasTakenAllBefore(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.here.Send(background, []byte("before")))
		b := s.here.send(large)
		s.run()
		require.False(t, b.isDone())
		require.Equal(t, 1, s.here.asks)
		require.Zero(t, s.load().Large, "nobody waits: a sleeping reader holds no room with it")

		first := s.there.recv()
		s.run()
		require.True(t, first.isDone())
		require.False(t, b.isDone(), "nobody waits again")
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

func TestTheWindowGrowsInsteadOfAnAllowWhereItCan(t *testing.T) {
	wide := plan
	wide.Spare = 1 << 20
	bubble(t, wide, func(t *testing.T, s *stream) {
		require.EqualValues(t, early+64<<10, s.here.end().Account().Limit, "what a handler begins with while there is room")
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

func TestASenderThatGivesUpBeforeItsAskHasLeftAsksNothing(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		synctest.Wait()
		b.cancel()
		<-b.done
		require.ErrorIs(t, b.err, codec.ErrCanceled)
		s.there.recv()
		s.run()
		require.Zero(t, s.here.asks+s.here.back)
		require.NoError(t, s.here.Send(background, nil), "the pipe goes on")
		b = s.here.send(large)
		s.run()
		s.there.recv()
		s.run()
		require.True(t, b.isDone())
		require.Equal(t, 1, s.here.asks)
		s.finish()
	})
}

func TestASenderThatGivesUpAfterItsAskHasLeftGivesTheAllowBack(t *testing.T) {
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
		require.NoError(t, s.here.Send(background, []byte("small")), "the pipe goes on")
		s.run()
		require.True(t, r.isDone())
		s.finish()
	})
}

func TestASenderThatGivesUpAsTheAllowComesUsesItOrGivesItBack(t *testing.T) {
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

func TestABlockThatWasAllowedAndIsNotSentGivesTheAllowBack(t *testing.T) {
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
				require.EqualValues(t, early, s.here.end().Account().Limit, "what was allowed is no credit")

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

// drop drops what waits at i to depart.
func (e *end) drop(i int) {
	e.mu.Lock()
	b := e.queue[i].(piping.Outgoing)
	e.queue = append(e.queue[:i:i], e.queue[i+1:]...)
	e.mu.Unlock()
	e.end().Dropped(len(b.Payload))
}

func TestNobodyAsksBeforeABlockThatWasAllowedIsOnItsWay(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.here.s.cross = func() bool { return true }
		first := s.here.send(large)
		s.run()
		s.there.recv()
		s.run()
		require.Len(t, s.here.s.crossing, 1)
		second := s.here.send(large / 2) // its Ask would take back what the first was allowed
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

func TestACreditMayCrossAnAsk(t *testing.T) {
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

func TestACreditThatIsEnoughAnswersTheAskThatItCrosses(t *testing.T) {
	for name, departs := range map[string]bool{"which has left": true, "which has not": false} {
		t.Run(name, func(t *testing.T) {
			wide := plan
			wide.Spare = 8 * early // so that the window may double
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

func TestPostAndAwaitCreditNeverAsk(t *testing.T) {
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

func TestAUsedUpWindowIsPressureForBlocksThatMayBeLost(t *testing.T) {
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

func TestTheEndReturnsWhatWasAllowed(t *testing.T) {
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
			"the Block waits to be received": func(s *stream) { s.run(); s.there.recv(); synctest.Wait(); s.there.Pause(); s.run() },
		} {
			t.Run(name+"/"+stage, func(t *testing.T) {
				bubble(t, plan, func(t *testing.T, s *stream) {
					s.here.send(large)
					steps(s)
					f(s)
					s.run()
					s.there.Unpause()
					s.run()
					require.Zero(t, s.load().Large)
					require.Zero(t, s.there.s.overrun, "what was allowed may come although nobody wants it any more")
					s.finish()
				})
			})
		}
	}
}

func TestTheEndTakesAClaimOutOfItsLine(t *testing.T) {
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
				var others limits.Claim
				others.Bytes, others.Granted = two.Large, func() {}
				require.True(t, s.there.s.room.Allow(&others))
				s.here.send(large)
				s.run()
				s.there.recv()
				s.run()
				require.Equal(t, 1, s.load().Asking)
				f(s)
				s.run()
				require.Zero(t, s.load().Asking)
				limits.Grant(s.there.s.room.Disallow(others.Bytes))
				s.finish()
			})
		})
	}
}

func TestABlockThatIsTakenAfterTheEndOfItsDirectionHoldsNoRoom(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		r := s.there.recv()
		synctest.Wait()
		s.there.Pause() // so that the end comes before it is taken
		s.run()
		require.True(t, b.isDone())
		require.NoError(t, s.here.CloseSend())
		s.run()
		require.Positive(t, s.load().Large)
		s.there.Unpause()
		synctest.Wait()
		require.Len(t, r.block.Payload, large)
		require.Zero(t, s.load().Large, "the handler has taken it, and goes on")
		s.finish()
	})
}

func TestAnAllowWhoseReceiverHasLeftGoesElsewhere(t *testing.T) {
	leaves := func(t *testing.T, s *stream) {
		r := s.there.recv()
		synctest.Wait()
		s.there.s.tell()
		r.cancel()
		<-r.done
		require.ErrorIs(t, r.err, codec.ErrCanceled)
		require.Zero(t, s.load().Large, "so that others may have the room")
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
		spare.Spare = 2 * large
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
	t.Run("nowhere, and the peer was not told", func(t *testing.T) {
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
			require.True(t, b.isDone(), "and is when somebody waits again")
			require.Len(t, r.block.Payload, large)
			s.finish()
		})
	})
}

// shelter has a Block sent to an end whose application asks for it and gives up waiting.
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

func TestABlockThatWasShelteredCountsUntilTheCallEnds(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		shelter(s, s.here, s.there)
		s.here.Abort(nil)
		s.run()
		require.Equal(t, large, s.there.s.shelter)
		s.finish()
	})
}

func TestABlockThatWasShelteredCountsAfterTheCallUntilItIsTaken(t *testing.T) {
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

// answered is a call whose handler has sent Blocks, and then its result, which the caller has not
// received.
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

func TestWhatIsLeftOfACallHoldsItsRoomUntil(t *testing.T) {
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
			s.here.Pause()
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

func TestWhatIsLeftOfACallThatNobodyHoldsIsGarbage(t *testing.T) {
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
	free := func() bool { return here.room.Load() == limits.Load{} && here.terms.Left.Load() == 0 }
	require.Eventually(t, free, 5*time.Second, time.Millisecond)
}

func TestAPausedPipeIsAllowedNothing(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.there.Pause()
		r := s.there.recv()
		b := s.here.send(large)
		s.run()
		require.False(t, b.isDone())
		require.Zero(t, s.load().Large)
		s.there.Unpause()
		s.run()
		require.True(t, b.isDone())
		require.True(t, r.isDone())
		s.finish()
	})
}

func TestAPauseKeepsWhatWasAllowed(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		b := s.here.send(large)
		s.run()
		r := s.there.recv()
		synctest.Wait()
		s.there.Pause()
		s.run()
		require.True(t, b.isDone())
		require.False(t, r.isDone())
		require.Positive(t, s.load().Large)
		s.there.Unpause()
		s.run()
		require.True(t, r.isDone())
		require.Zero(t, s.load().Large)
		s.finish()
	})
}

func TestARequestThatIsPausedInLineLetsOthersGo(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		var others limits.Claim
		others.Bytes, others.Granted = plan.Large, func() {}
		require.True(t, s.there.s.room.Allow(&others))
		b := s.here.send(large)
		s.run()
		s.there.recv()
		s.run()
		require.Equal(t, 1, s.load().Asking)
		s.there.Pause()
		limits.Grant(s.there.s.room.Disallow(others.Bytes))
		s.run()
		require.Equal(t, limits.Load{Windows: early}, s.load(), "it has passed its turn on")
		s.there.Unpause()
		s.run()
		require.True(t, b.isDone())
		s.finish()
	})
}

func TestAPauseEndsWithTheCall(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		require.NoError(t, s.there.Send(background, []byte("last")))
		s.here.Pause()
		r := s.here.recv()
		s.run()
		require.False(t, r.isDone())
		s.there.end().Close(nil)
		s.run()
		require.NoError(t, r.err, "what has come before the end is not lost")
		require.Equal(t, "last", string(r.block.Payload))
		s.finish()
	})
}

func TestSeveralSendersAndReceiversAllGoOn(t *testing.T) {
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

func TestWhoWaitsBehindAnAskGoesOnWhenItIsGivenUp(t *testing.T) {
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

func TestWhoSendsAgainAfterGivingUpUsesTheAskThatStands(t *testing.T) {
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

func TestAnAskThatIsFollowedByABlockIsNotAnsweredForTheNext(t *testing.T) {
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

func TestAnAskIsAnsweredWhoseAllowIsOvertakenByABlock(t *testing.T) {
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

func TestWhatWasAllowedHoldsNoRoomForBlocksBehindIt(t *testing.T) {
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
		s.there.Pause()
		for s.here.s.deliver() {
		}
		synctest.Wait()
		require.Positive(t, s.load().Large)
		s.there.Unpause()
		<-first.done
		require.Zero(t, s.load().Large, "the first Block has used it up, and the second has its place in the window")
		s.finish()
	})
}

func TestTheFirstBlockUsesUpWhatWasAllowed(t *testing.T) {
	room := limits.NewRoom(&plan)
	p, end, _ := running(t, room)
	require.True(t, end.AskArrived(0, 10_000))
	received := make(chan error)
	go func() { _, err := p.Recv(background); received <- err }()
	require.Eventually(t, func() bool { return room.Load().Large > 0 }, time.Second, time.Millisecond)
	p.Pause()
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(10)))
	require.Equal(t, piping.Overrun, end.BlockArrived(sized(5_000)), "the Allow is void behind it")
	p.Unpause()
	require.NoError(t, <-received)
	require.Zero(t, room.Load().Large)
}

func TestAnAskAfterSomethingElseThanHasArrivedIsNotAccepted(t *testing.T) {
	_, end, _ := running(t, limits.NewRoom(&plan))
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(10)))
	require.False(t, end.AskArrived(0, 10_000))
	require.False(t, end.AskArrived(overhead+11, 10_000))
	require.True(t, end.AskArrived(overhead+10, 10_000))
}

func TestAnAskForMoreThanThereEverIsHoldsNobodyUp(t *testing.T) {
	two := plan
	two.Workers = 2
	synctest.Test(t, func(t *testing.T) {
		room := limits.NewRoom(&two)
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
		require.Equal(t, limits.Load{}, room.Load())
	})
}

func TestStopAfterThePeersLastBlockGivesTheRoomBack(t *testing.T) {
	bubble(t, plan, func(t *testing.T, s *stream) {
		s.here.send(large)
		s.run()
		s.there.recv()
		synctest.Wait()
		s.there.Pause()
		s.run()
		require.NoError(t, s.here.CloseSend())
		s.run()
		require.Positive(t, s.load().Large)
		require.Equal(t, 1, s.there.s.messages)
		s.there.Stop()
		require.Zero(t, s.there.s.messages)
		require.Equal(t, limits.Load{}, s.load())
		s.there.Unpause()
		_, err := s.there.Recv(background)
		require.Equal(t, io.EOF, err)
		s.finish()
	})
}
