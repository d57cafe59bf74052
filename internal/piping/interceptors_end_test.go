package piping_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// misbehaviours are the ways in which an interceptor does not return.
var misbehaviours = map[string]func(){
	"panics":             func() { panic("oops") },
	"ends its goroutine": runtime.Goexit,
}

// apart calls f on a goroutine of its own, which f may end, and waits for its end.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestAround_NoReturnAborts(t *testing.T) {
	for how, misbehave := range misbehaviours {
		bad := func([]byte) ([]byte, error) { misbehave(); return nil, nil }
		ways := map[string]func(*pipe.Pipe) error{"Recv": func(p *pipe.Pipe) error { _, err := p.Recv(background); return err }}
		for name, send := range sends {
			ways[name] = func(p *pipe.Pipe) error { return send(p, []byte("b")) }
		}
		for name, way := range ways {
			t.Run(name+" "+how, func(t *testing.T) {
				p, end, port := wrapped(piping.StreamInterceptor{Send: bad, Recv: bad})
				end.BlockArrived(block("b"))
				var err error
				returned := false
				apart(func() { err = way(p); returned = true })
				require.Equal(t, how == "panics", returned)
				if returned {
					require.ErrorIs(t, err, codec.ErrPanicked)
				}
				require.Equal(t, []string{"abort panicked"}, port.sent)
				require.Len(t, port.lost, 1)
				require.Equal(t, how == "panics", port.lost[0] != nil)
				require.ErrorIs(t, p.Err(), codec.ErrPanicked, "and no lock is held")
				require.ErrorIs(t, p.Send(background, nil), codec.ErrPanicked)
				require.Zero(t, end.Account().Sent)
			})
		}
	}
}

// ways are the ways in which a call ends, and the outcome for the application.
var ways = map[string]struct {
	end    func(*piping.End)
	result string
	err    error
}{
	"the peer succeeds": {func(e *piping.End) { e.CloseArrived([]byte("r"), nil) }, "r!", nil},
	"the peer aborts":   {func(e *piping.End) { e.CloseArrived(nil, codec.ErrStalled) }, "", codec.ErrStalled},
	"this side aborts":  {func(e *piping.End) { e.Abort(codec.ErrStopped) }, "", codec.ErrStopped},
	"the application":   {func(e *piping.End) { e.GiveUp(codec.ErrExpired) }, "", codec.ErrExpired},
	"this side closes":  {func(e *piping.End) { e.Close([]byte("mine")) }, "!", nil},
	"under a lock":      {func(e *piping.End) { e.Closing(codec.ErrUnavailable)() }, "", codec.ErrUnavailable},
}

func TestOutcome_SeenOnce(t *testing.T) {
	for name, way := range ways {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, end, _ := newPipe(piping.Config{})
					seen := 0
					count := piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) { seen++; return r, err }}
					if late {
						way.end(end)
					}
					end.Wrap(count, marking("!"), piping.StreamInterceptor{})
					if !late {
						way.end(end)
					}
					synctest.Wait()
					require.Equal(t, 1, seen, "whether or not the application asks")
					end.Abort(codec.ErrPanicked)
					p.Abort(nil)
					<-p.Done()
					for range 2 {
						result, err := p.Result(background)
						require.Equal(t, way.result, string(result))
						require.ErrorIs(t, err, way.err)
						if err != nil {
							require.Equal(t, "!", err.(*codec.Abort).Message[len(err.(*codec.Abort).Message)-1:])
							require.Equal(t, err, p.Err())
						}
					}
					require.Equal(t, 1, seen)
				})
			})
		}
	}
}

func TestOutcome_ApplicationWaits(t *testing.T) {
	for name, c := range map[string]struct {
		abort  *codec.Abort
		before error // the error of callers that do not wait
	}{"of success": {nil, pipe.ErrClosed}, "of an abort": {codec.ErrStalled, codec.ErrStalled}} {
		t.Run(name, func(t *testing.T) { testTheApplicationWaits(t, c.abort, c.before) })
	}
}

func testTheApplicationWaits(t *testing.T, abort *codec.Abort, before error) {
	synctest.Test(t, func(t *testing.T) {
		p, end, _ := newPipe(piping.Config{SendLimit: overhead})
		gate := make(chan struct{})
		end.Wrap(piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) {
			<-gate
			return nil, codec.ErrUnauthorized
		}})
		end.BlockArrived(block("left"))
		waits := []*doing{
			do(func(ctx context.Context) (pipe.Block, error) { _, err := p.Result(ctx); return pipe.Block{}, err }),
			do(func(ctx context.Context) (pipe.Block, error) { return pipe.Block{}, p.Send(ctx, []byte("b")) }),
			do(func(ctx context.Context) (pipe.Block, error) { _, err := p.AwaitCredit(ctx); return pipe.Block{}, err }),
			do(func(context.Context) (pipe.Block, error) { <-p.Done(); return pipe.Block{}, p.Err() }),
		}
		synctest.Wait()
		end.CloseArrived([]byte("r"), abort) // and does not wait
		waits = append(waits,
			do(func(ctx context.Context) (pipe.Block, error) { return pipe.Block{}, p.Send(ctx, []byte("b")) }),
			do(func(ctx context.Context) (pipe.Block, error) { p.Recv(ctx); return p.Recv(ctx) }))
		synctest.Wait()
		for i, w := range waits {
			require.False(t, w.isDone(), i)
		}
		messages, _ := end.Waiting()
		require.Zero(t, messages, "received Blocks can be taken before")
		require.NoError(t, p.Err())
		_, err := p.Post(nil)
		require.ErrorIs(t, err, before, "it does not wait")
		require.ErrorIs(t, p.CloseSend(), before)
		require.ErrorIs(t, contextual(p, time.Second), codec.ErrExpired)
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		_, err = p.Result(ctx)
		require.ErrorIs(t, err, codec.ErrExpired)
		_, err = p.Recv(ctx)
		require.ErrorIs(t, err, codec.ErrExpired)

		close(gate)
		synctest.Wait()
		for i, w := range waits {
			require.True(t, w.isDone(), i)
			require.ErrorIs(t, w.err, codec.ErrUnauthorized, i)
		}
		_, err = p.Post(nil)
		require.ErrorIs(t, err, codec.ErrUnauthorized)
	})
}

func TestOutcome_FailureToSuccess(t *testing.T) {
	p, end, _ := wrapped(piping.StreamInterceptor{End: func([]byte, error) ([]byte, error) { return []byte("all the same"), nil }})
	end.CloseArrived(nil, codec.ErrStalled)
	result, err := p.Result(background)
	require.NoError(t, err)
	require.Equal(t, "all the same", string(result))
	require.NoError(t, p.Err())
	_, err = p.Recv(background)
	require.Equal(t, io.EOF, err)
	require.ErrorIs(t, p.Send(background, nil), pipe.ErrClosed)
}

func TestOutcome_ErrorToAbort(t *testing.T) {
	oops := errors.New("oops")
	var outer error
	p, end, _ := wrapped(
		piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) {
			require.Nil(t, r, "beside an error there is none")
			outer = err
			return r, err
		}},
		piping.StreamInterceptor{End: func(r []byte, _ error) ([]byte, error) { return r, oops }})
	end.CloseArrived([]byte("r"), nil)
	result, err := p.Result(background)
	require.Nil(t, result)
	require.ErrorIs(t, err, oops)
	require.IsType(t, new(codec.Abort), err)
	require.Equal(t, outer, err)
}

// bad is an error that panics.
type bad struct{}

func (bad) Error() string { panic("oops") }

func TestOutcome_NotReturned(t *testing.T) {
	ends := map[string]func(){"returns an error that panics": nil}
	for how, misbehave := range misbehaviours {
		ends[how] = misbehave
	}
	for how, misbehave := range ends {
		t.Run(how, func(t *testing.T) {
			seen := 0
			look := piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) { seen++; return r, err }}
			lose := piping.StreamInterceptor{End: func([]byte, error) ([]byte, error) {
				if misbehave != nil {
					misbehave()
				}
				return nil, bad{}
			}}
			p, end, port := wrapped(look, lose, lose, look)
			end.CloseArrived([]byte("r"), nil)
			_, err := p.Result(background)
			require.ErrorIs(t, err, codec.ErrPanicked)
			require.Equal(t, 2, seen, "the outer interceptors see the panic")
			require.Len(t, port.lost, 2)
			require.Empty(t, port.sent, "the call was over")
		})
	}
}

func TestAround_SenderSeesPanic(t *testing.T) {
	panics := func([]byte) ([]byte, error) { panic("oops") }
	p, end, _ := wrapped(piping.StreamInterceptor{Send: panics, Recv: panics, End: func([]byte, error) ([]byte, error) { return nil, nil }})
	end.BlockArrived(block("b"))
	require.ErrorIs(t, p.Send(background, nil), codec.ErrPanicked)
	_, err := p.Result(background)
	require.NoError(t, err)
}

// TestWrap_DuringEnd runs everything concurrently, for the race detector.
func TestWrap_DuringEnd(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				p, end, _ := newPipe(piping.Config{})
				var seen atomic.Int32
				var all sync.WaitGroup
				all.Go(func() { end.BlockArrived(block("b")); way.end(end) })
				all.Go(func() {
					end.Wrap(marking("!"), piping.StreamInterceptor{End: func(r []byte, err error) ([]byte, error) { seen.Add(1); return r, err }})
					for range 2 {
						all.Go(func() {
							result, err := p.Result(background)
							require.Equal(t, way.result, string(result))
							require.ErrorIs(t, err, way.err)
						})
					}
					all.Go(func() { p.Send(background, []byte("b")); p.Recv(background); p.Recv(background) })
					all.Go(func() { <-p.Done(); require.ErrorIs(t, p.Err(), way.err) })
				})
				all.Wait()
				require.EqualValues(t, 1, seen.Load())
			}
		})
	}
}
