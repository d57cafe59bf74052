package calls

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// These tests end a call in every possible way, and require that no way leaves a count, a slot of a
// gate, a key or a worker in use.

// The functions of the test. Functions with a key use the first letter of the parameters as the
// key; the parameters "!" make the key function panic.
var (
	gatedFn  = asterisque.Func[string, string](61, "gated")  // one runs at once
	keyedFn  = asterisque.Func[string, string](62, "keyed")  // one for each key
	bothFn   = asterisque.Func[string, string](63, "both")   // one for each key, and five in all
	inlineFn = asterisque.Func[string, string](64, "inline") // on the reader
	failFn   = asterisque.Func[string, chan int](65, "fail") // ends as its parameters say
	// receives Blocks until its call ends; has a key, and runs one call at a time
	streamFn = uint16(66)
)

// paths is the fixture of each way to end a call.
type paths struct {
	t                 *testing.T
	here, there       *asterisque.Node
	dialled, accepted *asterisque.Session
	h                 *testkit.Holder
	wg                sync.WaitGroup
	ctx               context.Context // of calls that are given up together
	giveUp            context.CancelFunc
}

func firstLetter(s string) string {
	if strings.HasPrefix(s, "!") {
		panic("no key")
	}
	return s[:1]
}

func pathService(h *testkit.Holder) *asterisque.Service {
	svc := testkit.EchoService()
	key := asterisque.WithKey(firstLetter)
	testkit.Held.Handle(svc, h.Serve)
	gatedFn.Handle(svc, h.Serve, asterisque.WithConcurrency(1))
	keyedFn.Handle(svc, h.Serve, key)
	bothFn.Handle(svc, h.Serve, asterisque.WithConcurrency(5), key)
	inlineFn.Handle(svc, testkit.EndAs, asterisque.WithInline(), asterisque.WithConcurrency(1), key)
	failFn.Handle(svc, func(ctx context.Context, how string) (chan int, error) {
		_, err := testkit.EndAs(ctx, how)
		return nil, err
	},
		asterisque.WithConcurrency(1), key)
	svc.Handle(streamFn, "stream", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		h.Began <- string(params)
		for {
			if _, err := p.Recv(ctx); err != nil {
				return nil, err
			}
		}
	}, asterisque.WithConcurrency(1), asterisque.WithKey(func(params []byte) byte { return params[0] }))
	return svc
}

// start makes a call that must fail with want, or succeed if want is nil. start returns once the
// call waits or has ended.
func (p *paths) start(ctx context.Context, fn asterisque.Function[string, string], params string, want error, opts ...asterisque.CallOption) {
	p.wg.Go(func() {
		_, err := fn.Call(ctx, p.dialled, params, opts...)
		p.check(params, err, want)
	})
	synctest.Wait()
}

// open opens a stream of function 66 and sends Blocks at once. want is as for start.
func (p *paths) open(ctx context.Context, params string, want error, opts ...asterisque.CallOption) *pipe.Pipe {
	s, err := p.dialled.Open(ctx, streamFn, []byte(params), opts...)
	require.NoError(p.t, err)
	for range 5 {
		require.NoError(p.t, s.Send(testkit.Background, []byte("block")))
	}
	p.wg.Go(func() {
		_, err := s.Result(testkit.Background)
		p.check(params, err, want)
	})
	synctest.Wait()
	return s
}

func (p *paths) check(params string, err, want error) {
	if !errors.Is(err, want) {
		p.t.Errorf("the call with %.10q: got %v, want %v", params, err, want)
	}
}

// wantWaiting checks the numbers of waiting and running calls.
func (p *paths) wantWaiting(waiting, running int) {
	p.t.Helper()
	st := p.accepted.Stats()
	require.Equal(p.t, []int{waiting, running}, []int{st.Waiting, st.Running}, "waiting, running")
}

// No way of ending a call leaves anything behind.
func TestEnds_LeaveNothing(t *testing.T) {
	closed := asterisque.ErrSessionClosed
	one := asterisque.WithWorkers(asterisque.Workers{Session: 1})
	for name, c := range map[string]struct {
		opts []asterisque.Option
		run  func(p *paths)
	}{
		"success": {run: func(p *paths) {
			for _, fn := range []asterisque.Function[string, string]{testkit.Held, gatedFn, keyedFn, bothFn} {
				p.start(testkit.Background, fn, "k", nil)
				p.h.End <- struct{}{}
			}
			p.start(testkit.Background, inlineFn, "k", nil)
		}},
		"an unknown function": {run: func(p *paths) {
			p.start(testkit.Background, asterisque.Func[string, string](99, "unknown"), "", asterisque.ErrNoFunction)
		}},
		"parameters that do not decode, before and after the key": {run: func(p *paths) {
			for _, number := range []uint16{60, 61, 62, 63, 64, 65} {
				_, err := p.dialled.Call(testkit.Background, number, []byte{0xff})
				require.ErrorIs(p.t, err, asterisque.ErrBadParams)
				require.True(p.t, asterisque.Repeatable(err), "function %d did not run", number)
			}
		}},
		"a panic of the key": {run: func(p *paths) {
			p.start(testkit.Background, bothFn, "!", asterisque.ErrPanicked)
			_, err := bothFn.Call(testkit.Background, p.dialled, "!")
			require.True(p.t, asterisque.Repeatable(err), "it did not run")
			require.NotContains(p.t, err.Error(), "no key", "what is inside stays inside")
		}},
		"a panic of the handler": {run: func(p *paths) {
			for _, number := range []uint16{failFn.Number(), inlineFn.Number()} {
				p.start(testkit.Background, asterisque.Func[string, string](number, ""), "k panic", asterisque.ErrPanicked)
			}
		}},
		"an error of the handler": {run: func(p *paths) {
			for _, number := range []uint16{failFn.Number(), inlineFn.Number()} {
				p.start(testkit.Background, asterisque.Func[string, string](number, ""), "k error", &asterisque.Abort{Code: codec.Failed})
			}
		}},
		"a result that cannot be encoded": {run: func(p *paths) {
			p.start(testkit.Background, asterisque.Func[string, string](failFn.Number(), ""), "k", asterisque.ErrBadResult)
		}},
		"a result that is too large": {run: func(p *paths) {
			p.start(testkit.Background, inlineFn, "k large", asterisque.ErrTooLarge)
		}},
		"parameters that are too large": {run: func(p *paths) {
			p.start(testkit.Background, bothFn, "k"+strings.Repeat("x", 5<<20), asterisque.ErrTooLarge)
		}},
		"given up while it waits for a worker": {opts: []asterisque.Option{one}, run: func(p *paths) {
			p.start(testkit.Background, testkit.Held, "k", nil)
			for range 100 {
				p.start(p.ctx, bothFn, "k", context.Canceled)
			}
			p.wantWaiting(100, 1)
			p.giveUp()
			synctest.Wait()
			p.wantWaiting(0, 1)
		}},
		"given up while it runs": {run: func(p *paths) {
			for _, fn := range []asterisque.Function[string, string]{testkit.Held, gatedFn, keyedFn, bothFn} {
				p.start(p.ctx, fn, "k", context.Canceled)
			}
			p.wantWaiting(0, 4)
			p.giveUp()
		}},
		"given up at the gate": {run: func(p *paths) {
			p.start(testkit.Background, gatedFn, "k", nil)
			for range 100 {
				p.start(p.ctx, gatedFn, "k", context.Canceled)
			}
			p.wantWaiting(100, 1)
			p.giveUp()
			synctest.Wait()
			p.wantWaiting(0, 1)
		}},
		"given up in the line of its key": {run: func(p *paths) {
			p.start(testkit.Background, bothFn, "k", nil)
			for range 100 {
				p.start(p.ctx, bothFn, "k", context.Canceled)
			}
			p.wantWaiting(100, 1)
			p.giveUp()
			synctest.Wait()
			p.wantWaiting(0, 1)
		}},
		"expired while it waits for a worker": {opts: []asterisque.Option{one}, run: func(p *paths) {
			p.start(testkit.Background, testkit.Held, "k", nil)
			p.start(testkit.Background, bothFn, "k", asterisque.ErrExpired, asterisque.WithTTL(time.Second))
			p.open(testkit.Background, "k", asterisque.ErrExpired, asterisque.WithTTL(time.Second))
			fakeclock.Sleep(time.Minute)
		}},
		"expired at the gate": {run: func(p *paths) {
			p.start(testkit.Background, gatedFn, "k", nil)
			p.start(testkit.Background, gatedFn, "k", asterisque.ErrExpired, asterisque.WithTTL(time.Second))
			fakeclock.Sleep(time.Minute)
		}},
		"expired in the line of its key": {run: func(p *paths) {
			p.start(testkit.Background, keyedFn, "k", nil)
			p.start(testkit.Background, keyedFn, "k", asterisque.ErrExpired, asterisque.WithTTL(time.Second))
			fakeclock.Sleep(time.Minute)
		}},
		"refused as overloaded": {opts: []asterisque.Option{one, asterisque.WithWorkers(asterisque.Workers{Waiting: 2})}, run: func(p *paths) {
			p.start(testkit.Background, testkit.Held, "k", nil)
			// displaced later by a call of higher priority
			p.start(testkit.Background, bothFn, "k", asterisque.ErrOverloaded, asterisque.WithPriority(-1))
			// displaced later, too
			p.open(testkit.Background, "k", asterisque.ErrOverloaded, asterisque.WithPriority(-1))
			// refused at once
			p.start(testkit.Background, bothFn, "k", asterisque.ErrOverloaded, asterisque.WithPriority(-1))
			for range 2 {
				p.start(p.ctx, bothFn, "k", context.Canceled)
			}
			p.wantWaiting(2, 1)
			p.giveUp()
		}},
		"a stream given up while it waits with Blocks": {opts: []asterisque.Option{one}, run: func(p *paths) {
			p.start(testkit.Background, testkit.Held, "k", nil)
			p.open(p.ctx, "k", context.Canceled)
			p.giveUp()
		}},
		"a stream given up while it runs": {run: func(p *paths) {
			p.open(p.ctx, "k", context.Canceled)
			p.giveUp()
		}},
		"a stream aborted in the line of its key": {run: func(p *paths) {
			p.open(p.ctx, "k", context.Canceled)
			p.open(testkit.Background, "k", asterisque.ErrUnavailable).Abort(asterisque.ErrUnavailable)
			p.giveUp()
		}},
		"a stream aborted at the gate": {run: func(p *paths) {
			p.open(p.ctx, "k", context.Canceled)
			p.open(testkit.Background, "l", asterisque.ErrUnavailable).Abort(asterisque.ErrUnavailable)
			p.giveUp()
		}},
		"Blocks for a function that takes none": {run: func(p *paths) {
			for _, number := range []uint16{gatedFn.Number(), keyedFn.Number()} {
				s, err := p.dialled.Open(testkit.Background, number, []byte("\x61k"))
				require.NoError(p.t, err)
				synctest.Wait()
				require.NoError(p.t, s.Send(testkit.Background, nil))
				_, err = s.Result(testkit.Background)
				require.ErrorIs(p.t, err, asterisque.ErrBadParams)
			}
		}},
		"the session dies while all wait and run": {opts: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 4})}, run: func(p *paths) {
			for _, fn := range []asterisque.Function[string, string]{testkit.Held, gatedFn, gatedFn, keyedFn, keyedFn, bothFn, testkit.Held, testkit.Held, bothFn} {
				p.start(testkit.Background, fn, "k", closed)
			}
			p.open(testkit.Background, "k", closed)
			p.wantWaiting(6, 4)
			p.dialled.Close()
		}},
		"the callee's side closes the session": {opts: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 4})}, run: func(p *paths) {
			for _, fn := range []asterisque.Function[string, string]{bothFn, gatedFn, keyedFn, testkit.Held} {
				p.start(testkit.Background, fn, "k", closed)
				// The second call waits, and is refused.
				p.start(testkit.Background, fn, "k", asterisque.ErrUnavailable)
			}
			p.accepted.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &paths{t: t, h: testkit.NewHolder()}
				p.ctx, p.giveUp = context.WithCancel(testkit.Background)
				defer p.giveUp()
				p.here, p.there = asterisque.NewNode(c.opts...), asterisque.NewNode(slices.Concat(c.opts, []asterisque.Option{asterisque.WithService(pathService(p.h))})...)
				defer p.here.Close()
				defer p.there.Close()
				p.dialled, p.accepted = asterisquetest.ConnectNodes(t, p.here, p.there)
				c.run(p)
				synctest.Wait() // before a running call may end by itself
				close(p.h.End)
				p.wg.Wait()
				synctest.Wait()
				require.Empty(t, testkit.Busy(p.dialled), "the caller's side")
				require.Empty(t, testkit.Busy(p.accepted), "the callee's side")
				p.wantUsable()
			})
		})
	}
}

// wantUsable requires that keys and gates accept calls of another session.
func (p *paths) wantUsable() {
	p.t.Helper()
	again, accepted := asterisquetest.ConnectNodes(p.t, p.here, p.there)
	ctx, cancel := context.WithTimeout(testkit.Background, time.Minute) // of the bubble
	defer cancel()
	for _, fn := range []asterisque.Function[string, string]{testkit.Held, gatedFn, keyedFn, bothFn, inlineFn} {
		for range 6 { // more than any of them runs at once
			_, err := fn.Call(ctx, again, "k")
			require.NoError(p.t, err, fn.Name())
		}
	}
	s, err := again.Open(ctx, streamFn, []byte("k"))
	require.NoError(p.t, err)
	require.NoError(p.t, s.CloseSend())
	_, err = s.Result(ctx)
	require.ErrorContains(p.t, err, "EOF", "the handler's own")
	synctest.Wait()
	require.Empty(p.t, testkit.Busy(accepted))
	require.Zero(p.t, p.there.Stats().Busy)
}

// TestKey_SessionDies closes a session while the key of an arrived call is computed: nothing is
// counted.
func TestKey_SessionDies(t *testing.T) {
	for name, panics := range map[string]bool{"and the key is found": false, "and the key panics": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen testkit.States
				named, goOn := make(chan struct{}), make(chan struct{})
				svc := asterisque.NewService()
				keyedFn.Handle(svc, func(context.Context, string) (string, error) { t.Error("it must not run"); return "", nil },
					asterisque.WithKey(func(string) int {
						close(named)
						<-goOn
						if panics {
							panic("no key")
						}
						return 1
					}))
				dialled, accepted := testkit.InMemory(t, svc, seen.Option())
				go keyedFn.Call(testkit.Background, dialled, "k")
				<-named
				go accepted.Close()
				synctest.Wait()
				close(goOn)
				synctest.Wait()
				require.Empty(t, testkit.Busy(accepted))
				require.Empty(t, seen.List(), "no limit was reached")
				require.LessOrEqual(t, accepted.Stats().MostInbound.Messages, 1)
			})
		})
	}
}
