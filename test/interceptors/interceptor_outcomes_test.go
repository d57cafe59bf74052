package interceptors

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// recorder has an interceptor that records its calls.
type recorder struct {
	trace []byte        // travels with calls
	block chan struct{} // the outcomes of calls from this side wait for it; nil: they do not

	mu     sync.Mutex
	events []string
	open   int // calls and handlers of which the outcome has not been seen
}

type spanKey struct{}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) begin(event string, function uint16, name string, done chan struct{}) func(error) {
	r.note("%s %d %q", event, function, name)
	r.mu.Lock()
	r.open++
	r.mu.Unlock()
	return func(err error) {
		if done != nil {
			<-done
		}
		r.note("%s done: %s", event, testkit.Outcome(err))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open--
	}
}

// options return the options that make the recorder observe all calls of a node.
func (r *recorder) options() []asterisque.Option {
	return []asterisque.Option{asterisque.WithOutboundInterceptors(r.made), asterisque.WithInboundInterceptors(r.served)}
}

func (r *recorder) made(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if err := c.SetTrace(r.trace); err != nil {
		return err
	}
	done := r.begin("call", c.Function(), c.Name(), r.block)
	if !c.Blocks() {
		err := next(ctx, c)
		done(err)
		return err
	}
	c.WrapBlocks(asterisque.Blocks{End: func(result []byte, err error) ([]byte, error) {
		done(err)
		return result, err
	}})
	err := next(ctx, c)
	if err != nil && c.Pipe() == nil {
		done(err)
	}
	return err
}

func (r *recorder) served(ctx context.Context, c *asterisque.Call, next asterisque.Next) (err error) {
	done := r.begin("serve", c.Function(), c.Name(), nil)
	defer func() { done(err) }()
	return next(context.WithValue(ctx, spanKey{}, string(c.Trace())), c)
}

// take returns the events recorded since the last call, sorted, and fails if a done is still
// missing, or came twice.
func (r *recorder) take(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Zero(t, r.open, "done is called once: %q", r.events)
	events := r.events
	r.events = nil
	slices.Sort(events)
	return events
}

// An interceptor sees the outcome of every call.
func TestInterceptor_SeesOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		how := asterisque.Func[string, string](70, "how")
		how.Handle(svc, func(ctx context.Context, s string) (string, error) {
			if s == "trace" {
				return ctx.Value(spanKey{}).(string), nil
			}
			return testkit.EndAs(ctx, "k "+s)
		})
		inline := asterisque.Func[string, string](71, "inline")
		inline.Handle(svc, testkit.EndAs, asterisque.WithInline())
		svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			b, err := p.Recv(ctx)
			if string(b.Payload) == "panic" {
				panic("kaboom")
			}
			return b.Payload, err
		})
		r := &recorder{trace: []byte("trace of the caller")}
		here := asterisque.NewNode(append(r.options(), asterisque.WithMaxOutstanding(99, 1))...)
		there := asterisque.NewNode(append(r.options(), asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 2}))...)
		defer here.Close()
		defer there.Close()
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		got, err := how.Call(testkit.Background, dialled, "trace")
		require.NoError(t, err)
		require.Equal(t, "trace of the caller", got, "it travels, and the context of the interceptor reaches the handler")
		synctest.Wait()
		require.Equal(t, []string{`call 70 "how"`, "call done: ok", `serve 70 "how"`, "serve done: ok"}, r.take(t))

		canceled, cancel := context.WithCancel(testkit.Background)
		cancel()
		stream := func(ctx context.Context, payload string, opts ...asterisque.CallOption) error {
			p, err := dialled.Open(ctx, 50, nil, opts...)
			if err != nil {
				return err
			}
			if payload != "" {
				p.Send(testkit.Background, []byte(payload))
			}
			_, err = p.Result(testkit.Background)
			return err
		}
		for _, c := range []struct {
			what string
			call func() error
			want []string
		}{
			{"error", func() error { _, err := how.Call(testkit.Background, dialled, "error"); return err },
				[]string{`call 70 "how"`, "call done: failed", `serve 70 "how"`, "serve done: broken"}},
			{"panic", func() error { _, err := how.Call(testkit.Background, dialled, "panic"); return err },
				[]string{`call 70 "how"`, "call done: panicked", `serve 70 "how"`, "serve done: panicked"}},
			{"inline", func() error { _, err := inline.Call(testkit.Background, dialled, "k panic"); return err },
				[]string{`call 71 "inline"`, "call done: panicked", `serve 71 "inline"`, "serve done: panicked"}},
			{"parameters", func() error { _, err := dialled.Call(testkit.Background, 70, []byte{0xff}); return err },
				[]string{`call 70 ""`, "call done: bad parameters", `serve 70 "how"`, "serve done: bad parameters"}},
			{"no function", func() error { _, err := dialled.Call(testkit.Background, 98, nil); return err },
				[]string{`call 98 ""`, "call done: no such function"}},
			{"never sent", func() error { _, err := how.Call(canceled, dialled, ""); return err },
				[]string{`call 70 "how"`, "call done: canceled"}},
			{"time is up", func() error {
				_, err := testkit.Held.Call(testkit.Background, dialled, "", asterisque.WithTTL(time.Second))
				return err
			},
				[]string{`call 60 "held"`, "call done: expired", `serve 60 "held"`, "serve done: expired"}},
			{"stream", func() error { return stream(testkit.Background, "x") },
				[]string{`call 50 ""`, "call done: ok", `serve 50 "stream"`, "serve done: ok"}},
			{"stream, panic", func() error { return stream(testkit.Background, "panic") },
				[]string{`call 50 ""`, "call done: panicked", `serve 50 "stream"`, "serve done: panicked"}},
			{"stream, time is up", func() error { return stream(testkit.Background, "", asterisque.WithTTL(time.Second)) },
				[]string{`call 50 ""`, "call done: expired", `serve 50 "stream"`, "serve done: expired"}},
			{"stream, never sent", func() error { return stream(canceled, "") },
				[]string{`call 50 ""`, "call done: canceled"}},
			{"stream, too large", func() error { _, err := dialled.Open(testkit.Background, 50, make([]byte, 5<<20)); return err },
				[]string{`call 50 ""`, "call done: too large"}},
		} {
			c.call()
			synctest.Wait()
			slices.Sort(c.want)
			require.Equal(t, c.want, r.take(t), c.what)
		}

		var wg sync.WaitGroup // the death of the session, while two run and one waits
		h.Order()
		for range 2 {
			wg.Go(func() { testkit.Held.Call(testkit.Background, dialled, "") })
		}
		<-h.Began
		<-h.Began
		p, err := dialled.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		synctest.Wait()
		dialled.Close()
		wg.Wait()
		<-p.Done()
		synctest.Wait()
		require.Equal(t, []string{`call 50 ""`, `call 60 "held"`, `call 60 "held"`, "call done: session closed", "call done: session closed", "call done: session closed",
			`serve 60 "held"`, `serve 60 "held"`, "serve done: canceled", "serve done: canceled"}, r.take(t))
	})
}

// A trace context crosses up to its limit.
func TestTrace_UpToLimit(t *testing.T) {
	for size, fits := range map[int]bool{0: true, 1: true, 512: true, 513: false, 1 << 20: false} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := &recorder{trace: bytes.Repeat([]byte{'x'}, size)}
			svc := asterisque.NewService()
			svc.Handle(7, "trace", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
				return []byte(ctx.Value(spanKey{}).(string)), nil
			})
			dialled, accepted := testkit.Connect(t, svc, r.options()...)
			for range 2 {
				got, err := dialled.Call(testkit.Background, 7, nil)
				if !fits {
					require.ErrorContains(t, err, fmt.Sprintf("a trace context of %d bytes exceeds the limit of 512", size))
					continue
				}
				require.NoError(t, err)
				require.Equal(t, string(r.trace), string(got))
				p, err := dialled.Open(testkit.Background, 7, nil)
				require.NoError(t, err)
				got, err = p.Result(testkit.Background)
				require.NoError(t, err)
				require.Equal(t, string(r.trace), string(got))
			}
			testkit.WantIdle(t, dialled, accepted)
		})
	}
}

// TestCallbacks_HoldUpNoCall blocks every callback of the application for the end of a call: no
// other call is blocked.
func TestCallbacks_HoldUpNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService()
		svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			if string(params) == "wait" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		})
		r := &recorder{block: make(chan struct{})}
		here, there := asterisque.NewNode(r.options()...), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		works := func(why string) {
			t.Helper()
			back := make(chan struct{})
			// a call in the other direction, which needs the reader of the caller's side
			p, err := accepted.Open(testkit.Background, 7, nil)
			require.NoError(t, err)
			go func() { defer close(back); p.Result(testkit.Background) }()
			synctest.Wait()
			select {
			case <-back:
			default:
				t.Fatal(why)
			}
		}
		var wg sync.WaitGroup
		// its done blocks the caller
		wg.Go(func() { testkit.Held.Call(testkit.Background, dialled, "") })
		synctest.Wait()
		h.End <- struct{}{}
		works("a caller that is held up after its result has come")

		// its done is called when the peer's Close arrives
		ended, err := dialled.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, ended.Err(), "until all have seen the outcome, it is not over")
		works("the End of a stream that ended by itself")

		ctx, cancel := context.WithCancel(testkit.Background)
		waits, err := dialled.Open(ctx, 50, []byte("wait"))
		require.NoError(t, err)
		stop := context.AfterFunc(ctx, func() { <-r.block }) // and the application's own
		defer stop()
		cancel()
		synctest.Wait()
		works("the End of a stream that was given up, and a context.AfterFunc")
		require.NoError(t, waits.Err())

		var streams sync.WaitGroup
		for range 5 {
			p, err := dialled.Open(testkit.Background, 50, []byte("wait"))
			require.NoError(t, err)
			streams.Go(func() { p.Result(testkit.Background) })
		}
		dialled.Close()
		close(r.block)
		streams.Wait()
		wg.Wait()
		synctest.Wait()
		r.take(t)
	})
}

// TestAfterFunc_Blocks requires that a function that a handler passes to context.AfterFunc may
// block: it occupies neither the only worker nor the session.
func TestAfterFunc_Blocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		svc := testkit.EchoService()
		svc.Handle(50, "after", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			context.AfterFunc(ctx, func() { <-release })
			return nil, nil
		})
		dialled, accepted := testkit.InMemory(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		for range 5 {
			_, err := dialled.Call(testkit.Background, 50, nil)
			require.NoError(t, err)
			_, err = testkit.Echo.Call(testkit.Background, dialled, "")
			require.NoError(t, err)
		}
		close(release)
		testkit.WantIdle(t, dialled, accepted)
	})
}
