package asterisquetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/pipe"
)

// plain returns a record without the fields that differ between runs.
func plain(c asterisquetest.Record) asterisquetest.Record {
	c.Began, c.Took = time.Time{}, 0
	return c
}

// A record has the parameters of a call, and its outcome.
func TestRecord_ParamsAndOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made, served, all asterisquetest.Recorder
		svc := service()
		svc.Handle(30, "raw", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
		here, _ := asterisquetest.Pair{
			Here:  []asterisque.Option{asterisque.WithOutboundInterceptors(made.Intercept)},
			There: []asterisque.Option{asterisque.WithService(svc), asterisque.WithInboundInterceptors(served.Intercept)},
		}.Connect(t)
		on := asterisque.Intercept(here, all.Intercept)
		meta := asterisque.Metadata{"id": "7"}
		for name, c := range map[string]struct {
			call   func()
			made   asterisquetest.Record
			served *asterisquetest.Record // nil: none
			text   string
		}{
			"typed": {
				func() {
					greet.Call(asterisque.ContextWithMetadata(background, meta), on, "asterisk", asterisque.WithPriority(3), asterisque.WithFailFast())
				},
				asterisquetest.Record{Function: 10, Name: "greet", Params: "asterisk", Metadata: meta, Priority: 3, FailFast: true, Over: true, Result: "hello, asterisk"},
				&asterisquetest.Record{Function: 10, Name: "greet", Inbound: true, Params: "asterisk", Metadata: meta, Priority: 3, Over: true, Result: "hello, asterisk"},
				`made function 10 "greet" with "asterisk": "hello, asterisk"`,
			},
			"untyped": {
				func() { asterisque.CallOn(background, on, 30, []byte{0x61, 'x'}) },
				asterisquetest.Record{Function: 30, RawParams: []byte{0x61, 'x'}, Over: true, RawResult: []byte{0x61, 'x'}},
				&asterisquetest.Record{Function: 30, Name: "raw", Inbound: true, Blocks: true, RawParams: []byte{0x61, 'x'}, Over: true, RawResult: []byte{0x61, 'x'}},
				`made function 30 with "x": "x"`,
			},
			"untyped, of nothing": {
				func() { asterisque.CallOn(background, on, 30, nil) },
				asterisquetest.Record{Function: 30, RawParams: []byte{}, Over: true, RawResult: []byte{}},
				&asterisquetest.Record{Function: 30, Name: "raw", Inbound: true, Blocks: true, RawParams: []byte{}, Over: true, RawResult: []byte{}},
				`made function 30 with no bytes: no bytes`,
			},
			"stream": {
				func() { sumOf(background, on, 1, 2, 3) },
				asterisquetest.Record{Function: 20, Name: "sum", Blocks: true, Params: 1, Over: true, RawResult: []byte{6}},
				&asterisquetest.Record{Function: 20, Name: "sum", Inbound: true, Blocks: true, Params: 1, Over: true, Result: 6},
				`made function 20 "sum" with 1: 6`,
			},
			"failed": {
				func() { asterisque.CallOn(background, on, 99, nil) },
				asterisquetest.Record{Function: 99, RawParams: []byte{}, Over: true, Err: asterisque.ErrNoFunction},
				nil,
				`made function 99 with no bytes: asterisque: no such function: function 99 (said by the peer)`,
			},
			"failed stream": {
				func() {
					c, _ := sum.Open(background, on, 1)
					synctest.Wait()
					c.Abort(asterisque.ErrStalled)
					c.Result(background)
				},
				asterisquetest.Record{Function: 20, Name: "sum", Blocks: true, Params: 1, Over: true, Err: asterisque.ErrStalled},
				&asterisquetest.Record{Function: 20, Name: "sum", Inbound: true, Blocks: true, Params: 1, Over: true, Err: asterisque.ErrStalled},
				`made function 20 "sum" with 1: ` + asterisque.ErrStalled.Error(),
			},
		} {
			c.call()
			synctest.Wait()
			for _, r := range []*asterisquetest.Recorder{&made, &all} {
				require.Len(t, r.Calls(), 1, name)
				requireRecord(t, c.made, r.Calls()[0], name)
				require.Equal(t, c.text, r.Calls()[0].String(), name)
			}
			if c.served == nil {
				require.Empty(t, served.Calls(), name)
			} else {
				require.Len(t, served.Calls(), 1, name)
				requireRecord(t, *c.served, served.Calls()[0], name)
			}
			for _, r := range []*asterisquetest.Recorder{&made, &all, &served} {
				r.Reset()
				require.Empty(t, r.Calls())
			}
		}
	})
}

// requireRecord compares two records, and compares errors with errors.Is.
func requireRecord(t *testing.T, want, got asterisquetest.Record, name string) {
	t.Helper()
	if want.Err != nil {
		require.ErrorIs(t, got.Err, want.Err, name)
		want.Err = got.Err
	}
	require.Equal(t, want, plain(got), name)
}

// A record has the start of a call, and its duration.
func TestRecord_Times(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec asterisquetest.Recorder
		here, _ := asterisquetest.Connect(t, service(), asterisque.WithInboundInterceptors(rec.Intercept))
		began := time.Now()
		go hold.Call(background, here, "x", asterisque.WithTTL(time.Second))
		synctest.Wait()
		calls := rec.Calls()
		require.Len(t, calls, 1)
		require.False(t, calls[0].Over)
		require.Equal(t, `served function 11 "hold" with "x", which runs`, calls[0].String())
		calls, err := rec.Await(background, 1)
		require.NoError(t, err)
		require.True(t, calls[0].Over)
		require.Equal(t, began, calls[0].Began)
		require.Equal(t, time.Second, calls[0].Took)
	})
}

// A stream is over when its result has arrived.
func TestRecord_StreamOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec asterisquetest.Recorder
		here, _ := asterisquetest.Connect(t, service(), asterisque.WithOutboundInterceptors(rec.Intercept))
		c, err := sum.Open(background, here, 1)
		require.NoError(t, err)
		synctest.Wait()
		require.False(t, rec.Calls()[0].Over)
		require.NoError(t, c.CloseSend())
		calls, err := rec.Await(background, 1) // without a use of the result
		require.NoError(t, err)
		require.Equal(t, []byte{1}, calls[0].RawResult)
	})
}

// ParamsOf returns the parameters of one function with their type.
func TestParamsOf_Typed(t *testing.T) {
	var rec asterisquetest.Recorder
	here, _ := asterisquetest.Connect(t, service(), asterisque.WithOutboundInterceptors(rec.Intercept))
	for _, name := range []string{"a", "b", "c"} {
		_, err := greet.Call(background, here, name)
		require.NoError(t, err)
		_, err = sumOf(background, here, len(name))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a", "b", "c"}, asterisquetest.ParamsOf(t, &rec, greet))
	require.Equal(t, []int{1, 1, 1}, asterisquetest.StreamParamsOf(t, &rec, sum))
	require.Empty(t, asterisquetest.ParamsOf(t, &rec, hold))
	require.Len(t, rec.Of(sum), 3)

	_, err := here.Call(background, greet.Number(), []byte{0x61, 'x'})
	require.NoError(t, err)
	said := run(func(t2 *fakeT) {
		require.Equal(t, []string{"a", "b", "c", ""}, asterisquetest.ParamsOf(t2, &rec, greet))
		require.Len(t, asterisquetest.ParamsOf(t2, &rec, asterisque.Func[int, int](10, "greet")), 4)
		asterisquetest.ParamsOf(t2, &rec, asterisque.Func[any, int](10, "greet"))
	})
	require.Len(t, said, 1+4+1)
	require.Equal(t, `asterisquetest: made function 10 with "x": "hello, x": its parameters are no string`, said[0])
	require.Contains(t, said[1], "are no int")
}

// A nil parameter of an interface type is nil.
func TestParamsOf_NilInterface(t *testing.T) {
	var rec asterisquetest.Recorder
	anything := asterisque.Func[any, any](30, "anything")
	fake := asterisquetest.NewFake(t)
	asterisquetest.Answer(fake, anything, func(context.Context, any) (any, error) { return nil, nil })
	_, err := anything.Call(background, asterisque.Intercept(fake, rec.Intercept), nil)
	require.NoError(t, err)
	require.Equal(t, []any{nil}, asterisquetest.ParamsOf(t, &rec, anything))
	require.Equal(t, `made function 30 "anything" with <nil>: <nil>`, rec.Calls()[0].String())
}

// Await returns when the given number of calls is over.
func TestRecorder_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec asterisquetest.Recorder
		fake := asterisquetest.NewFake(t)
		asterisquetest.Answer(fake, greet, func(context.Context, string) (string, error) { return "", nil })
		on := asterisque.Intercept(fake, rec.Intercept)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan int, 8)
		for _, n := range []int{0, 1, 3, 3, 9} {
			go func() {
				calls, err := rec.Await(ctx, n)
				if (n == 9) != errors.Is(err, context.Canceled) {
					t.Error(n, err)
				}
				returned <- len(calls)
			}()
		}
		for want := range 3 {
			synctest.Wait()
			require.Len(t, returned, 1)
			require.Equal(t, want, <-returned)
			_, err := greet.Call(background, on, "x")
			require.NoError(t, err)
			if want == 1 {
				synctest.Wait()
				require.Empty(t, returned)
				_, err = greet.Call(background, on, "x")
				require.NoError(t, err)
				break
			}
		}
		synctest.Wait()
		require.Len(t, returned, 2)
		cancel()
		for range 3 {
			require.Equal(t, 3, <-returned)
		}
	})
}

// Reset also removes calls that still run.
func TestReset_RunningCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec asterisquetest.Recorder
		here, _ := asterisquetest.Connect(t, service(), asterisque.WithOutboundInterceptors(rec.Intercept))
		ctx, cancel := context.WithCancel(background)
		go hold.Call(ctx, here, "x")
		synctest.Wait()
		rec.Reset()
		cancel()
		synctest.Wait()
		require.Empty(t, rec.Calls())
		_, err := rec.Await(ctx, 1)
		require.ErrorIs(t, err, context.Canceled, "what was forgotten does not count")
		_, err = greet.Call(background, here, "x")
		require.NoError(t, err)
		calls, err := rec.Await(background, 1)
		require.NoError(t, err)
		require.Equal(t, "greet", calls[0].Name)
	})
}

// A call with code that ends the goroutine is recorded as panicked.
func TestRecorder_Goexit(t *testing.T) {
	for name, i := range map[string]asterisque.Interceptor{
		"exits":  func(context.Context, *asterisque.Call, asterisque.Next) error { runtime.Goexit(); return nil },
		"panics": func(context.Context, *asterisque.Call, asterisque.Next) error { panic("an interceptor") },
	} {
		var rec asterisquetest.Recorder
		done := make(chan struct{})
		go func() {
			defer close(done)
			greet.Call(background, asterisque.Intercept(asterisquetest.NewFake(t), rec.Intercept, i), "x")
		}()
		<-done
		require.True(t, rec.Calls()[0].Over, name)
		require.ErrorIs(t, rec.Calls()[0].Err, asterisque.ErrPanicked, name)
	}
}

// A Recorder is safe for concurrent use.
func TestRecorder_Concurrent(t *testing.T) {
	var rec asterisquetest.Recorder
	here, there := asterisquetest.Connect(t, nil, asterisque.WithService(service()),
		asterisque.WithOutboundInterceptors(rec.Intercept), asterisque.WithInboundInterceptors(rec.Intercept))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			on := []asterisque.Caller{here, there}[i%2]
			for n := range 20 {
				if _, err := greet.Call(background, on, fmt.Sprint(n)); err != nil {
					t.Error(err)
				}
				if _, err := sumOf(background, on, n, n); err != nil {
					t.Error(err)
				}
				rec.Of(greet)
			}
		})
	}
	wg.Wait()
	calls, err := rec.Await(background, 8*20*4)
	require.NoError(t, err)
	require.Len(t, calls, 8*20*4)
	require.Len(t, asterisquetest.ParamsOf(t, &rec, greet), 8*20*2)
}
