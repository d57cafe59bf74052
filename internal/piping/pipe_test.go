package piping_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestMain(m *testing.M) { leak.Main(m) }

// overhead is the cost of a Block in the tests besides its payload, and early the credit that comes
// without asking.
const (
	overhead = flow.LeastOverhead
	early    = overhead + 1024
)

func TestRecv_InOrderThenEnd(t *testing.T) {
	p, end, port := newPipe(piping.Config{})
	for _, b := range []string{"a", "", "c"} {
		require.Equal(t, piping.Accepted, end.BlockArrived(piping.NewBlock([]byte(b), nil, 1, time.Time{})))
	}
	require.Equal(t, piping.Accepted, end.EndArrived(0))
	messages, bytes := end.Waiting()
	require.Equal(t, 3, messages)
	require.Equal(t, 3*overhead+2, bytes)
	for _, want := range []string{"a", "", "c"} {
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, want, string(b.Payload))
		require.EqualValues(t, 1, b.Skipped)
	}
	for range 2 {
		_, err := p.Recv(background)
		require.Equal(t, io.EOF, err)
	}
	require.Equal(t, 3, port.taken)
	require.Equal(t, piping.Violation, end.BlockArrived(sized(0)), "a Block after the end")
	require.Equal(t, piping.Violation, end.EndArrived(0), "a second end")
}

func TestDirections_EndSeparately(t *testing.T) {
	p, end, port := newPipe(piping.Config{})
	require.NoError(t, p.CloseSend())
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrEnded)
	_, err := p.Post(nil)
	require.ErrorIs(t, err, pipe.ErrEnded)
	require.ErrorIs(t, p.CloseSend(), pipe.ErrEnded)
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(0)), "the peer may still send")
	require.Equal(t, []string{"end"}, port.sent)
}

func TestClose_KeepsArrivedBlocks(t *testing.T) {
	p, end, port := newPipe(piping.Config{Function: 7, Priority: 3})
	end.BlockArrived(block("last"))
	require.True(t, end.CloseArrived([]byte("result"), nil))
	require.Zero(t, port.taken, "it counts as long as it can be taken")
	require.False(t, end.CloseArrived(nil, codec.ErrPanicked), "a pipe ends once")

	<-p.Done()
	require.NoError(t, p.Err())
	result, err := p.Result(background)
	require.NoError(t, err)
	require.Equal(t, "result", string(result))
	b, err := p.Recv(background)
	require.NoError(t, err)
	require.Equal(t, "last", string(b.Payload))
	require.Equal(t, 1, port.taken)
	_, err = p.Recv(background)
	require.Equal(t, io.EOF, err)
	require.Equal(t, 1, port.taken, "once")
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrClosed)
	require.Equal(t, piping.Late, end.BlockArrived(sized(0)))
	require.Equal(t, piping.Late, end.EndArrived(0))
	require.EqualValues(t, 7, p.Function())
	require.EqualValues(t, 3, p.Priority())
}

func TestAbort_DiscardsBlocks(t *testing.T) {
	p, end, port := newPipe(piping.Config{})
	end.BlockArrived(block("lost"))
	end.CloseArrived(nil, codec.ErrUnavailable)
	_, err := p.Recv(background)
	require.ErrorIs(t, err, codec.ErrUnavailable)
	_, err = p.Result(background)
	require.ErrorIs(t, err, codec.ErrUnavailable)
	require.ErrorIs(t, p.Send(background, nil), codec.ErrUnavailable)
	require.ErrorIs(t, p.Err(), codec.ErrUnavailable)
	require.Equal(t, 1, port.taken, "discarded Blocks no longer wait")
}

func TestAbort_SentOnce(t *testing.T) {
	p, end, port := newPipe(piping.Config{})
	p.Abort(nil)
	p.Abort(errors.New("again"))
	end.Close(nil)
	require.Equal(t, []string{"abort canceled"}, port.sent)
	require.False(t, end.CloseArrived(nil, nil), "the peer's Close crossed")
	require.ErrorIs(t, p.Err(), codec.ErrCanceled)
}

func TestClose_SendsResult(t *testing.T) {
	_, end, port := newPipe(piping.Config{})
	end.Close([]byte("done"))
	require.Equal(t, []string{"close done"}, port.sent)
}

func TestSend_WaitsForWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(piping.Config{SendLimit: 2*(overhead+1) + overhead})
		require.NoError(t, p.Send(background, []byte("1")))
		require.NoError(t, p.Send(background, []byte("2")))
		require.ErrorIs(t, contextual(p, time.Second), codec.ErrExpired, "the last Block may not overshoot, and the context ends the wait")
		_, err := p.Post([]byte("x"))
		require.ErrorIs(t, err, codec.ErrOverloaded, "Post does not wait")
		require.NoError(t, p.Send(background, nil), "an empty Block still fits")

		sent := make(chan error)
		for range 2 { // one grant wakes both
			go func() { sent <- p.Send(background, []byte("later")) }()
		}
		synctest.Wait()
		end.CreditArrived(1)
		end.CreditArrived(100 * overhead)
		require.NoError(t, <-sent)
		require.NoError(t, <-sent)
		require.Equal(t, []string{"1", "2", "", "later", "later"}, port.sent)
	})
}

func TestAwaitCredit_SendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(piping.Config{SendLimit: early + 1})
		fits, err := p.AwaitCredit(background)
		require.NoError(t, err)
		require.Equal(t, early+1-overhead, fits)
		require.NoError(t, p.Send(background, []byte("12")), "it has used up nothing")
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err = p.AwaitCredit(ctx)
		require.ErrorIs(t, err, codec.ErrExpired, "a Block that costs as much as comes by itself would not fit")

		waited := make(chan error)
		for range 2 { // one grant wakes both
			go func() { _, err := p.AwaitCredit(background); waited <- err }()
		}
		go func() { waited <- p.Send(background, make([]byte, early-overhead)) }() // and a sender
		synctest.Wait()
		end.CreditArrived(100 * overhead)
		for range 3 {
			require.NoError(t, <-waited)
		}
		require.NoError(t, p.CloseSend())
		_, err = p.AwaitCredit(background)
		require.ErrorIs(t, err, pipe.ErrEnded)
		require.Equal(t, "12", port.sent[0])
	})
}

func TestCredit_OfRefusedBlock(t *testing.T) {
	p, _, port := newPipe(piping.Config{SendLimit: overhead + 100})
	port.refuse = codec.ErrTooLarge
	require.ErrorIs(t, p.Send(background, make([]byte, 100)), codec.ErrTooLarge)
	port.refuse = nil
	require.NoError(t, p.Send(background, make([]byte, 100)), "the pipe remains usable")
	require.ErrorIs(t, contextual(p, 0), codec.ErrExpired)
}

func TestCredit_OfDroppedBlock(t *testing.T) {
	p, end, _ := newPipe(piping.Config{SendLimit: overhead + 100})
	require.NoError(t, p.Send(background, make([]byte, 100)))
	end.Dropped(100)
	require.NoError(t, p.Send(background, make([]byte, 100)), "the peer will never grant it again")
	require.ErrorIs(t, contextual(p, 0), codec.ErrExpired)
}

func TestGive_CostsAsSend(t *testing.T) {
	p, end, port := newPipe(piping.Config{SendLimit: overhead + 5})
	mem := buffer.Take(100)
	port.refuse = codec.ErrTooLarge
	require.ErrorIs(t, end.Give(background, mem, copy(mem.B, "given")), codec.ErrTooLarge)
	port.refuse = nil
	require.NoError(t, end.Give(background, mem, len("given")), "the credit was given back, and the memory is its owner's still")
	require.ErrorIs(t, contextual(p, 0), codec.ErrExpired)
	require.Equal(t, []string{"given"}, port.sent)
}

func TestEnd_WakesAllWaiters(t *testing.T) {
	for name, finish := range map[string]func(*pipe.Pipe, *piping.End){
		"abort here":  func(p *pipe.Pipe, _ *piping.End) { p.Abort(codec.ErrUnavailable) },
		"abort there": func(_ *pipe.Pipe, e *piping.End) { e.CloseArrived(nil, codec.ErrUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, end, _ := newPipe(piping.Config{SendLimit: overhead})
				require.NoError(t, p.Send(background, nil))
				errs := make(chan error)
				waiters := 0
				for _, wait := range []func() error{
					func() error { return p.Send(background, nil) },
					func() error { _, err := p.Recv(background); return err },
					func() error { _, err := p.Result(background); return err },
				} {
					for range 3 {
						go func() { errs <- wait() }()
						waiters++
					}
				}
				synctest.Wait()
				finish(p, end)
				for range waiters {
					require.ErrorIs(t, <-errs, codec.ErrUnavailable)
				}
			})
		})
	}
}

func TestCloseSend_WakesSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := newPipe(piping.Config{SendLimit: overhead})
		require.NoError(t, p.Send(background, nil))
		errs := make(chan error)
		for range 3 {
			go func() { errs <- p.Send(background, nil) }()
		}
		synctest.Wait()
		require.NoError(t, p.CloseSend())
		for range 3 {
			require.ErrorIs(t, <-errs, pipe.ErrEnded)
		}
	})
}

func TestStop_WakesSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(piping.Config{SendLimit: overhead})
		require.NoError(t, p.Send(background, nil))
		errs := make(chan error)
		for range 2 {
			go func() { errs <- p.Send(background, nil) }()
		}
		synctest.Wait()
		end.StopArrived()
		for range 2 {
			require.ErrorIs(t, <-errs, codec.ErrStopped, "the peer wants no more")
		}
		require.NoError(t, p.CloseSend(), "the end may still be said")

		end.BlockArrived(block("waits"))
		p.Stop()
		p.Stop()
		_, err := p.Recv(background)
		require.ErrorIs(t, err, codec.ErrStopped)
		require.Equal(t, piping.Late, end.BlockArrived(sized(0)), "what still comes is ignored")
		require.Equal(t, []string{"", "end", "stop"}, port.sent, "the Stop is sent once")
		require.Equal(t, 1, port.taken)
		require.NoError(t, p.Err(), "the call continues")
	})
}

func TestRecv_ReceiversShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, _ := newPipe(piping.Config{})
		got := make(chan error, 5)
		for range 5 {
			go func() { _, err := p.Recv(background); got <- err }()
		}
		synctest.Wait()
		for range 3 {
			end.BlockArrived(sized(0))
		}
		synctest.Wait()
		require.Len(t, got, 3, "each Block goes to one of them")
		end.EndArrived(0)
		synctest.Wait()
		require.Len(t, got, 5, "the end goes to all other receivers")
	})
}

func TestContext_EndsOnlyTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	p, end, port := newPipe(piping.Config{})
	_, err := p.Recv(ctx)
	require.ErrorIs(t, err, codec.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Result(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, port.sent, "the pipe remains usable")
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(0)))
}

func TestExpiry_SkipsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(piping.Config{})
		soon := time.Now().Add(time.Second)
		end.BlockArrived(piping.NewBlock([]byte("a"), nil, 1, soon))
		end.BlockArrived(block("b"))
		end.BlockArrived(piping.NewBlock([]byte("c"), nil, 2, soon))
		end.EndArrived(3)
		fakeclock.Sleep(time.Second)
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "b", string(b.Payload))
		require.EqualValues(t, 2, b.Skipped, "one on the way, and one here")
		_, err = p.Recv(background)
		require.Equal(t, io.EOF, err)
		require.EqualValues(t, 2+1+3, p.Skipped(), "Blocks missing at the end")
		require.Equal(t, 3, port.taken)
	})
}
