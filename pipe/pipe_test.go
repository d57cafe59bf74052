package pipe_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestMain(m *testing.M) { leak.Main(m) }

// port is a session that remembers what a pipe did.
type port struct {
	mu     sync.Mutex
	sent   []string // Blocks, "end", "close" and "abort"
	grants []uint64
	taken  int
	window int   // what the session can afford; 0: anything
	refuse error // what Send and Post return
}

func (p *port) note(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	p.sent = append(p.sent, s)
	return nil
}

func (p *port) Send(_ context.Context, b pipe.Outgoing) error { return p.note(string(b.Payload)) }
func (p *port) Post(b pipe.Outgoing) (limits.State, error) {
	return limits.Congested, p.note(string(b.Payload))
}
func (p *port) CloseSend() error { return p.note("end") }
func (p *port) MaxBlock() int    { return 1 << 20 }

func (p *port) Window() int {
	if p.window > 0 {
		return p.window
	}
	return 1 << 30
}
func (p *port) Stop()                     { p.note("stop") }
func (p *port) Grant(total uint64)        { p.grants = append(p.grants, total) }
func (p *port) Taken(messages, bytes int) { p.mu.Lock(); p.taken += messages; p.mu.Unlock() }
func (p *port) Close(result []byte, abort *codec.Abort) {
	if abort != nil {
		p.note("abort " + abort.Code.String())
	} else {
		p.note("close " + string(result))
	}
}

// newPipe returns both faces of a pipe and its port.
func newPipe(c pipe.Config) (*pipe.Pipe, *pipe.End, *port) {
	p, port := new(pipe.Pipe), new(port)
	c.Port = port
	p.Init(c)
	return p, (*pipe.End)(p), port
}

var background = context.Background()

func TestBlocksComeInTheirOrderAndThenTheEnd(t *testing.T) {
	p, end, port := newPipe(pipe.Config{})
	for _, b := range []string{"a", "", "c"} {
		require.Equal(t, pipe.Accepted, end.Block([]byte(b), nil, 1, time.Time{}))
	}
	require.Equal(t, pipe.Accepted, end.CloseSend(0))
	messages, bytes := end.Waiting()
	require.Equal(t, []int{3, 2}, []int{messages, bytes})
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
	require.Equal(t, pipe.Violation, end.Block(nil, nil, 0, time.Time{}), "a Block after the end")
	require.Equal(t, pipe.Violation, end.CloseSend(0), "a second end")
}

func TestEachDirectionEndsByItself(t *testing.T) {
	p, end, port := newPipe(pipe.Config{})
	require.NoError(t, p.CloseSend())
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrEnded)
	_, err := p.Post(nil)
	require.ErrorIs(t, err, pipe.ErrEnded)
	require.ErrorIs(t, p.CloseSend(), pipe.ErrEnded)
	require.Equal(t, pipe.Accepted, end.Block(nil, nil, 0, time.Time{}), "the peer goes on")
	require.Equal(t, []string{"end"}, port.sent)
}

func TestACloseWithResultLeavesWhatHasArrived(t *testing.T) {
	p, end, port := newPipe(pipe.Config{Function: 7, Priority: 3})
	end.Block([]byte("last"), nil, 0, time.Time{})
	require.True(t, end.Closed([]byte("result"), nil))
	require.Equal(t, 1, port.taken, "it counts no longer, whether it will be received or not")
	require.False(t, end.Closed(nil, codec.ErrPanicked), "a pipe ends once")

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
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrClosed)
	require.Equal(t, pipe.Late, end.Block(nil, nil, 0, time.Time{}))
	require.Equal(t, pipe.Late, end.CloseSend(0))
	require.EqualValues(t, 7, p.Function())
	require.EqualValues(t, 3, p.Priority())
}

func TestAnAbortDiscardsWhatHasArrived(t *testing.T) {
	p, end, port := newPipe(pipe.Config{})
	end.Block([]byte("lost"), nil, 0, time.Time{})
	end.Closed(nil, codec.ErrUnavailable)
	_, err := p.Recv(background)
	require.ErrorIs(t, err, codec.ErrUnavailable)
	_, err = p.Result(background)
	require.ErrorIs(t, err, codec.ErrUnavailable)
	require.ErrorIs(t, p.Send(background, nil), codec.ErrUnavailable)
	require.ErrorIs(t, p.Err(), codec.ErrUnavailable)
	require.Equal(t, 1, port.taken, "discarded Blocks no longer wait")
}

func TestAbortTellsThePeerOnce(t *testing.T) {
	p, end, port := newPipe(pipe.Config{})
	p.Abort(nil)
	p.Abort(errors.New("again"))
	end.Close(nil)
	require.Equal(t, []string{"abort canceled"}, port.sent)
	require.False(t, end.Closed(nil, nil), "the peer's Close crossed")
	require.ErrorIs(t, p.Err(), codec.ErrCanceled)
}

func TestCloseSendsTheResult(t *testing.T) {
	_, end, port := newPipe(pipe.Config{})
	end.Close([]byte("done"))
	require.Equal(t, []string{"close done"}, port.sent)
}

func TestSendingWaitsForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(pipe.Config{SendLimit: 2*(limits.Overhead+1) + 1})
		require.NoError(t, p.Send(background, []byte("1")))
		require.NoError(t, p.Send(background, []byte("2")))
		require.NoError(t, contextual(p, time.Second), "the last Block may overshoot")
		_, err := p.Post([]byte("x"))
		require.ErrorIs(t, err, codec.ErrOverloaded, "Post does not wait")
		require.ErrorIs(t, contextual(p, time.Second), codec.ErrExpired, "the context ends the wait")

		sent := make(chan error)
		for range 2 { // one grant lets both go on
			go func() { sent <- p.Send(background, []byte("later")) }()
		}
		synctest.Wait()
		end.Credit(1)
		end.Credit(100 * limits.Overhead)
		require.NoError(t, <-sent)
		require.NoError(t, <-sent)
		require.Equal(t, []string{"1", "2", "0", "later", "later"}, port.sent)
	})
}

func TestAwaitCreditWaitsForTheWindowAndSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(pipe.Config{SendLimit: 1})
		require.NoError(t, p.AwaitCredit(background))
		require.NoError(t, p.Send(background, []byte("1")), "it has used up nothing")
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		require.ErrorIs(t, p.AwaitCredit(ctx), codec.ErrExpired)

		waited := make(chan error)
		for range 2 { // one grant lets both go on
			go func() { waited <- p.AwaitCredit(background) }()
		}
		synctest.Wait()
		end.Credit(100 * limits.Overhead)
		require.NoError(t, <-waited)
		require.NoError(t, <-waited)
		require.NoError(t, p.CloseSend())
		require.ErrorIs(t, p.AwaitCredit(background), pipe.ErrEnded)
		require.Equal(t, "1", port.sent[0])
	})
}

// contextual sends a Block with a time limit.
func contextual(p *pipe.Pipe, d time.Duration) error {
	ctx, cancel := context.WithTimeout(background, d)
	defer cancel()
	return p.Send(ctx, []byte("0"))
}

func TestARefusedBlockGivesItsCreditBack(t *testing.T) {
	p, _, port := newPipe(pipe.Config{SendLimit: limits.Overhead})
	port.refuse = codec.ErrTooLarge
	require.ErrorIs(t, p.Send(background, make([]byte, 100)), codec.ErrTooLarge)
	port.refuse = nil
	require.NoError(t, p.Send(background, []byte("small")), "the pipe goes on")
}

func TestABlockGivenAwayCostsAndWaitsAsOneThatIsSent(t *testing.T) {
	p, end, port := newPipe(pipe.Config{SendLimit: 1})
	mem := buffer.Take(100)
	port.refuse = codec.ErrTooLarge
	require.ErrorIs(t, end.Give(background, mem, copy(mem.B, "given")), codec.ErrTooLarge)
	port.refuse = nil
	require.NoError(t, end.Give(background, mem, len("given")), "the credit was given back, and the memory is its owner's still")
	require.ErrorIs(t, contextual(p, 0), codec.ErrExpired)
	require.Equal(t, []string{"given"}, port.sent)
}

func TestEveryoneWhoWaitsWakesWhenThePipeEnds(t *testing.T) {
	for name, finish := range map[string]func(*pipe.Pipe, *pipe.End){
		"abort here":  func(p *pipe.Pipe, _ *pipe.End) { p.Abort(codec.ErrUnavailable) },
		"abort there": func(_ *pipe.Pipe, e *pipe.End) { e.Closed(nil, codec.ErrUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, end, _ := newPipe(pipe.Config{SendLimit: 1})
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

func TestSendersThatWaitLearnOfCloseSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := newPipe(pipe.Config{SendLimit: 1})
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

func TestAReceiverThatStopsWakesTheSendersAndDiscards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(pipe.Config{SendLimit: 1})
		require.NoError(t, p.Send(background, nil))
		errs := make(chan error)
		for range 2 {
			go func() { errs <- p.Send(background, nil) }()
		}
		synctest.Wait()
		end.Stop()
		for range 2 {
			require.ErrorIs(t, <-errs, codec.ErrStopped, "the peer wants no more")
		}
		require.NoError(t, p.CloseSend(), "the end may still be said")

		end.Block([]byte("waits"), nil, 0, time.Time{})
		p.Stop()
		p.Stop()
		_, err := p.Recv(background)
		require.ErrorIs(t, err, codec.ErrStopped)
		require.Equal(t, pipe.Late, end.Block(nil, nil, 0, time.Time{}), "what still comes is ignored")
		require.Equal(t, []string{"", "end", "stop"}, port.sent, "the peer is told once")
		require.Equal(t, 1, port.taken)
		require.NoError(t, p.Err(), "the call goes on")
	})
}

func TestReceiversShareTheBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, _ := newPipe(pipe.Config{})
		got := make(chan error, 5)
		for range 5 {
			go func() { _, err := p.Recv(background); got <- err }()
		}
		synctest.Wait()
		for range 3 {
			end.Block(nil, nil, 0, time.Time{})
		}
		synctest.Wait()
		require.Len(t, got, 3, "each Block goes to one of them")
		end.CloseSend(0)
		synctest.Wait()
		require.Len(t, got, 5, "the end goes to all the others")
	})
}

func TestTheContextEndsOnlyTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	p, end, port := newPipe(pipe.Config{})
	_, err := p.Recv(ctx)
	require.ErrorIs(t, err, codec.ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.Result(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, port.sent, "the pipe goes on")
	require.Equal(t, pipe.Accepted, end.Block(nil, nil, 0, time.Time{}))
}

func TestWindowGrantsHalfAtATimeAndGrowsWhileTheReaderKeepsUp(t *testing.T) {
	const block = 1024 - limits.Overhead
	p, end, port := newPipe(pipe.Config{Window: &pipe.Window{Initial: 8 << 10, Max: 16 << 10}})
	for range 8 {
		require.Equal(t, pipe.Accepted, end.Block(make([]byte, block), nil, 0, time.Time{}))
	}
	require.Equal(t, pipe.Overrun, end.Block(make([]byte, block), nil, 0, time.Time{}), "the window is used up")
	for range 7 {
		p.Recv(background)
	}
	require.Equal(t, []uint64{12 << 10}, port.grants, "half, without growth: the reader lags")
	p.Recv(background)
	require.Equal(t, uint64(8<<10+16<<10), port.grants[1], "the reader has emptied a window that was used whole: it doubles")
}

func TestTheWindowShrinksToItsMinimumWhileTheSessionIsFull(t *testing.T) {
	const block = 1024 - limits.Overhead
	p, end, port := newPipe(pipe.Config{Window: &pipe.Window{Initial: 8 << 10, Min: 2 << 10}})
	for range 8 {
		end.Block(make([]byte, block), nil, 0, time.Time{})
	}
	port.window = 1
	for range 6 {
		p.Recv(background)
	}
	require.Empty(t, port.grants, "two are left, and more than the minimum is granted already")
	p.Recv(background)
	require.Equal(t, []uint64{9 << 10}, port.grants, "never less than the minimum")
	port.window = 0
	p.Recv(background)
	require.Equal(t, uint64(16<<10), port.grants[1], "and the old size again when there is room")
}

func TestBlocksWhoseTimeIsUpArePassedOverAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, end, port := newPipe(pipe.Config{})
		soon := time.Now().Add(time.Second)
		end.Block([]byte("a"), nil, 1, soon)
		end.Block([]byte("b"), nil, 0, time.Time{})
		end.Block([]byte("c"), nil, 2, soon)
		end.CloseSend(3)
		time.Sleep(time.Second) // of the bubble
		b, err := p.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "b", string(b.Payload))
		require.EqualValues(t, 2, b.Skipped, "one on the way, and one here")
		_, err = p.Recv(background)
		require.Equal(t, io.EOF, err)
		require.EqualValues(t, 2+1+3, p.Skipped(), "what is missing at the end")
		require.Equal(t, 3, port.taken)
	})
}

func TestWithoutAWindowNothingIsGrantedOrRefused(t *testing.T) {
	p, end, port := newPipe(pipe.Config{})
	for range 1000 {
		require.Equal(t, pipe.Accepted, end.Block(make([]byte, 1024), nil, 0, time.Time{}))
	}
	for range 1000 {
		p.Recv(background)
	}
	end.Credit(5) // from a peer with a window of its own, on a pipe that has none: no limit appears
	require.NoError(t, p.Send(background, make([]byte, 1024)))
	require.NoError(t, p.Send(background, make([]byte, 1024)))
	require.Empty(t, port.grants)
}
