package interceptors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// trail records the order of events.
type trail struct {
	mu    sync.Mutex
	steps []string
}

func (t *trail) note(step string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, step)
}

func (t *trail) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.steps = nil }()
	return strings.Join(t.steps, " ")
}

// around records the calls that pass it.
func (t *trail) around(name string) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		t.note(name + ">")
		defer t.note("<" + name)
		return next(ctx, c)
	}
}

// Interceptors run in the order in which they are given.
func TestInterceptors_Order(t *testing.T) {
	way := new(trail)
	list := func(names ...string) (all []asterisque.Interceptor) {
		for _, name := range names {
			all = append(all, way.around(name))
		}
		return all
	}
	svc := asterisque.NewService()
	handle := func(context.Context, string) (string, error) { way.note("handler"); return "", nil }
	testkit.Echo.Handle(svc, handle, asterisque.WithFunctionInterceptors(list("f1", "f2")...), asterisque.WithFunctionInterceptors(list("f3")...))
	svc.Intercept(list("s1", "s2")...)
	svc.Intercept(list("s3")...)
	testkit.Work.Handle(svc, func(context.Context, int) (int, error) { way.note("handler"); return 0, nil })
	svc.Handle(50, "stream", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { way.note("handler"); return nil, nil })

	here := testkit.NewNode(t, asterisque.WithOutboundInterceptors(list("m1", "m2")...), asterisque.WithOutboundInterceptors(list("m3")...))
	there := testkit.NewNode(t, asterisque.WithService(svc), asterisque.WithInboundInterceptors(list("n1", "n2")...))
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	on := asterisque.Intercept(asterisque.Intercept(dialled, list("w2", "w3")...), list("w1")...)
	option := asterisque.WithCallInterceptors(list("c1", "c2")...)

	const out, back = "c1> c2> w1> w2> w3> m1> m2> m3> ", " <m3 <m2 <m1 <w3 <w2 <w1 <c2 <c1"
	_, err := testkit.Echo.Call(testkit.Background, on, "", option)
	require.NoError(t, err)
	require.Equal(t, out+"n1> n2> s1> s2> s3> f1> f2> f3> handler <f3 <f2 <f1 <s3 <s2 <s1 <n2 <n1"+back, way.take())
	_, err = asterisque.CallOn(testkit.Background, on, testkit.Work.Number(), []byte{1}, option)
	require.NoError(t, err)
	require.Equal(t, out+"n1> n2> s1> s2> s3> handler <s3 <s2 <s1 <n2 <n1"+back, way.take())
	_, err = testkit.Work.Call(testkit.Background, dialled, 1)
	require.NoError(t, err)
	require.Equal(t, "m1> m2> m3> n1> n2> s1> s2> s3> handler <s3 <s2 <s1 <n2 <n1 <m3 <m2 <m1", way.take())

	p, err := asterisque.OpenOn(testkit.Background, on, 50, nil, option)
	require.NoError(t, err)
	_, err = p.Result(testkit.Background)
	require.NoError(t, err)
	testkit.Settled(t, func() bool { return accepted.Stats().Running == 0 })
	steps := strings.Fields(way.take())
	require.Equal(t, strings.Fields(out), steps[:8], "those of the caller leave as soon as the pipe is open, so the rest is in any order")
	require.Len(t, steps, 8*2+5*2+1)
}

// An interceptor sees the fields of a call.
func TestInterceptor_SeesCall(t *testing.T) {
	type seen struct {
		function          uint16
		name              string
		served, blocks    bool
		typed             bool
		priority          int8
		subject           string
		params, result    any
		rawParams, raw    string
		durable, failFast bool
		left              bool
	}
	var mu sync.Mutex
	var all []seen
	look := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		s := seen{function: c.Function(), name: c.Name(), served: c.Inbound(), blocks: c.Blocks(), typed: c.Typed(), priority: int8(c.Priority()),
			subject: c.Session().Peer().Subject, params: c.Params(), durable: c.Durable(), failFast: c.FailFast()}
		raw, err := c.RawParams()
		if err != nil {
			return err
		}
		s.rawParams = fmt.Sprintf("%x", raw)
		_, s.left = ctx.Deadline()
		err = next(ctx, c)
		s.result = c.Result()
		if raw, err := c.RawResult(); err == nil {
			s.raw = fmt.Sprintf("%x", raw)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return err
	}
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) { return n + 1, nil })
	svc.Handle(50, "stream", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
	access := asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: "somebody"}, nil
	}})
	here := testkit.NewNode(t, asterisque.WithOutboundInterceptors(look))
	there := testkit.NewNode(t, asterisque.WithService(svc), asterisque.WithInboundInterceptors(look), access)
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	take := func() []seen {
		testkit.Settled(t, func() bool { return accepted.Stats().Running == 0 })
		mu.Lock()
		defer mu.Unlock()
		defer func() { all = nil }()
		return all
	}

	n, err := testkit.Work.Call(testkit.Background, dialled, 7, asterisque.WithPriority(3), asterisque.WithTTL(time.Minute), asterisque.WithFailFast())
	require.NoError(t, err)
	require.Equal(t, 8, n)
	require.Equal(t, []seen{
		{function: 30, name: "work", served: true, typed: true, priority: 3, subject: "somebody", params: 7, result: 8, rawParams: "07", raw: "08", left: true},
		{function: 30, name: "work", typed: true, priority: 3, params: 7, result: 8, rawParams: "07", raw: "08", failFast: true, left: true},
	}, take())
	got, err := dialled.Call(testkit.Background, 30, []byte{7})
	require.NoError(t, err)
	require.Equal(t, []byte{8}, got)
	require.Equal(t, []seen{
		{function: 30, name: "work", served: true, typed: true, subject: "somebody", params: 7, result: 8, rawParams: "07", raw: "08"},
		{function: 30, rawParams: "07", raw: "08"},
	}, take(), "one side may know the types, and the other one not")
	p, err := dialled.Open(testkit.Background, 50, []byte{7})
	require.NoError(t, err)
	_, err = p.Result(testkit.Background)
	require.NoError(t, err)
	require.ElementsMatch(t, []seen{
		{function: 50, name: "stream", served: true, blocks: true, subject: "somebody", rawParams: "07", raw: "07"},
		{function: 50, blocks: true, rawParams: "07"},
	}, take())
}

// TestInterceptor_ChangesCall makes each possible change on each side, around a typed and an
// untyped function.
func TestInterceptor_ChangesCall(t *testing.T) {
	type intercepts = func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error
	cases := []struct {
		what string
		do   intercepts
		want int // result of work(5), which adds 1; 0: an error
		err  error
	}{
		{"nothing", testkit.Passes, 6, nil},
		{"value of the parameters", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			return errors.Join(c.SetParams(c.Params().(int)*2), next(ctx, c))
		}, 11, nil},
		{"bytes of the parameters", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.SetRawParams([]byte{9})
			return next(ctx, c)
		}, 10, nil},
		{"bytes, and what they stand for is looked at", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.SetRawParams([]byte{9})
			return errors.Join(c.SetParams(c.Params().(int)+1), next(ctx, c))
		}, 11, nil},
		{"value of the result", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			return errors.Join(next(ctx, c), c.SetResult(c.Result().(int)+20))
		}, 26, nil},
		{"bytes of the result", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			err := next(ctx, c)
			c.SetRawResult([]byte{3})
			return err
		}, 3, nil},
		{"a result without calling on", func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
			return c.SetResult(4)
		}, 4, nil},
		{"bytes of a result without calling on", func(_ context.Context, c *asterisque.Call, _ asterisque.Next) error {
			c.SetRawResult([]byte{2})
			return nil
		}, 2, nil},
		{"an error without calling on", func(context.Context, *asterisque.Call, asterisque.Next) error {
			return asterisque.ErrUnauthorized
		}, 0, asterisque.ErrUnauthorized},
		{"another error", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			next(ctx, c)
			return asterisque.ErrOverloaded
		}, 0, asterisque.ErrOverloaded},
		{"no error", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.SetRawParams([]byte{0x20}) // work fails for -1
			if next(ctx, c) == nil {
				return errors.New("it did not fail")
			}
			return c.SetResult(1)
		}, 1, nil},
		{"the context", func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return next(ctx, c)
		}, 0, asterisque.ErrCanceled},
	}
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(ctx context.Context, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("negative")
		}
		return n + 1, ctx.Err()
	})
	for _, c := range cases {
		for _, side := range []string{"made", "served"} {
			t.Run(c.what+", "+side, func(t *testing.T) {
				opts := []asterisque.Option{asterisque.WithService(svc)}
				on := func(s *asterisque.Session) asterisque.Caller { return s }
				if side == "served" {
					opts = append(opts, asterisque.WithInboundInterceptors(testkit.Passes, c.do, testkit.Passes))
				} else {
					on = func(s *asterisque.Session) asterisque.Caller {
						return asterisque.Intercept(s, testkit.Passes, c.do, testkit.Passes)
					}
				}
				dialled, _ := testkit.ConnectNodes(t, testkit.NewNode(t), testkit.NewNode(t, opts...))
				got, err := testkit.Work.Call(testkit.Background, on(dialled), 5)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.want, got)
			})
		}
	}
}

// An interceptor may call next several times for an outbound call.
func TestInterceptor_CallsAgain(t *testing.T) {
	svc := asterisque.NewService()
	tries := 0
	testkit.Work.Handle(svc, func(_ context.Context, n int) (int, error) {
		if tries++; tries < n {
			return 0, asterisque.ErrOverloaded.Withf("try %d", tries)
		}
		return tries, nil
	})
	svc.Handle(50, "stream", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	dialled, accepted := testkit.Connect(t, svc)
	again := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		err := next(ctx, c)
		for range 4 {
			if err != nil || c.Blocks() {
				err = next(ctx, c)
			}
		}
		return err
	}
	n, err := testkit.Work.Call(testkit.Background, asterisque.Intercept(dialled, again), 4)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	p, err := asterisque.OpenOn(testkit.Background, asterisque.Intercept(dialled, again), 50, nil)
	require.NoError(t, err)
	// the earlier ones have ended
	testkit.Settled(t, func() bool { return accepted.Stats().Pipes == 1 })
	p.Abort(nil)
	testkit.WantIdle(t, dialled, accepted)

	served := asterisque.NewNode(asterisque.WithService(testkit.SumService()), asterisque.WithInboundInterceptors(again))
	defer served.Close()
	one, _ := testkit.ConnectNodes(t, testkit.NewNode(t), served)
	_, err = testkit.Sums.Open(testkit.Background, one, testkit.Window{N: 1})
	require.NoError(t, err)
}

// A handler runs once, however often an interceptor calls next.
func TestInterceptor_RunsOnce(t *testing.T) {
	ran := 0
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(context.Context, int) (int, error) { ran++; return ran, nil }, asterisque.WithFunctionInterceptors(
		func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			return errors.Join(next(ctx, c), next(ctx, c))
		}))
	dialled, _ := testkit.Connect(t, svc)
	_, err := testkit.Work.Call(testkit.Background, dialled, 1)
	require.ErrorContains(t, err, `function 30 "work": an interceptor calls on again: a handler runs once`)
	require.Equal(t, 1, ran)
}
