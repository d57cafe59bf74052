package asterisquetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
)

// The Callers below are written as in applications, with the calls on them.

// pool makes its calls on its members in turn.
type pool struct {
	members []asterisque.Caller
	next    atomic.Uint64
}

func (p *pool) Invoke(ctx context.Context, c *asterisque.Call) error {
	return p.members[p.next.Add(1)%uint64(len(p.members))].Invoke(ctx, c)
}

// failover makes a call on one member after the other until a call may have run.
type failover []asterisque.Caller

func (f failover) Invoke(ctx context.Context, c *asterisque.Call) (err error) {
	for _, on := range f {
		if err = on.Invoke(ctx, c); !asterisque.Repeatable(err) {
			return err
		}
	}
	return c.Refuse(fmt.Errorf("each of %d has failed: %w", len(f), err))
}

// tenant adds the name of its tenant to each call, and denies functions.
type tenant struct {
	on     asterisque.Caller
	name   string
	denied map[uint16]bool
}

func (w tenant) Invoke(ctx context.Context, c *asterisque.Call) error {
	if w.denied[c.Function()] {
		return c.Refuse(asterisque.ErrUnauthorized.Withf("%s may not", w.name))
	}
	return w.on.Invoke(asterisque.ContextWithMetadata(ctx, asterisque.Metadata{"tenant": w.name}), c)
}

// upper changes the parameters and the result of a call.
type upper struct{ on asterisque.Caller }

func (u upper) Invoke(ctx context.Context, c *asterisque.Call) error {
	if s, ok := c.Params().(string); ok {
		if err := c.SetParams(strings.ToUpper(s)); err != nil {
			return err
		}
	}
	if err := u.on.Invoke(ctx, c); err != nil || c.Blocks() {
		return err
	}
	if s, ok := c.Result().(string); ok {
		return c.SetResult(s + "!")
	}
	return nil
}

// cache answers a repeated call from its memory.
type cache struct {
	on asterisque.Caller

	mu    sync.Mutex
	known map[string]any // guarded by mu
}

func (k *cache) Invoke(ctx context.Context, c *asterisque.Call) error {
	if c.Blocks() || !c.Typed() {
		return k.on.Invoke(ctx, c)
	}
	key := fmt.Sprint(c.Function(), c.Params())
	k.mu.Lock()
	result, ok := k.known[key]
	k.mu.Unlock()
	if ok {
		return c.SetResult(result)
	}
	err := k.on.Invoke(ctx, c)
	if err == nil {
		k.mu.Lock()
		k.known[key] = c.Result()
		k.mu.Unlock()
	}
	return err
}

// callAll makes a call of each kind.
func callAll(t *testing.T, on asterisque.Caller) {
	t.Helper()
	got, err := greet.Call(background, on, "x")
	require.NoError(t, err)
	require.Equal(t, "hello, x", got)
	n, err := sumOf(background, on, 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	raw, err := asterisque.CallOn(background, on, greet.Number(), []byte{0x61, 'x'})
	require.NoError(t, err)
	require.Equal(t, "\x68hello, x", string(raw))
	p, err := asterisque.OpenOn(background, on, sum.Number(), []byte{1})
	require.NoError(t, err)
	require.NoError(t, p.Send(background, []byte{2}))
	require.NoError(t, p.CloseSend())
	raw, err = p.Result(background)
	require.NoError(t, err)
	require.Equal(t, []byte{3}, raw)
}

// Calls of each kind can be made on a Caller that an application has written.
func TestCaller_EachKindOfCall(t *testing.T) {
	sick := asterisquetest.NewFake(t)
	for _, f := range []asterisquetest.Numbered{greet, sum} {
		sick.Fail(f, &asterisque.Abort{Code: asterisque.ErrOverloaded.Code, Ran: codec.NeverSent})
	}
	closed, _ := asterisquetest.Connect(t, nil)
	closed.Close()
	peers := []*asterisquetest.Peer{newPeer(t), newPeer(t)}
	var rec asterisquetest.Recorder
	for name, on := range map[string]asterisque.Caller{
		"wrapper":      wrapper{peers[0]},
		"pool":         &pool{members: []asterisque.Caller{peers[0], peers[1]}},
		"failover":     failover{sick, closed, peers[0]},
		"tenant":       tenant{on: peers[0], name: "acme"},
		"cache":        &cache{on: peers[0], known: map[string]any{}},
		"recorder":     asterisque.Intercept(peers[0], rec.Intercept),
		"all of these": asterisque.Intercept(&pool{members: []asterisque.Caller{failover{sick, tenant{on: wrapper{peers[1]}}}}}, rec.Intercept),
	} {
		t.Run(name, func(t *testing.T) {
			callAll(t, on)
			callAll(t, on)
		})
	}
	require.Len(t, rec.Calls(), 2*2*4)
}

// A pool of an application uses its members in turn.
func TestPool_MembersInTurn(t *testing.T) {
	var recs [2]asterisquetest.Recorder
	var members []asterisque.Caller
	for i := range recs {
		members = append(members, asterisque.Intercept(newPeer(t), recs[i].Intercept))
	}
	p := &pool{members: members}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := greet.Call(background, p, "x"); err != nil {
				t.Error(err)
			}
			if _, err := sumOf(background, p, 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range recs {
		require.Len(t, recs[i].Calls(), 10)
	}
}

// A failover makes a call again only if it did not run.
func TestFailover_OnlyIfNotRun(t *testing.T) {
	never := &asterisque.Abort{Code: asterisque.ErrUnavailable.Code, Ran: codec.NeverSent}
	maybe := &asterisque.Abort{Code: asterisque.ErrSessionClosed.Code}
	for name, c := range map[string]struct {
		first, second error
		want          error
		asked         int
		repeatable    bool
	}{
		"the second one answers":     {never, nil, nil, 1, false},
		"it may have run":            {maybe, nil, maybe, 0, false},
		"no member":                  {never, never, never, 1, true},
		"the second may have run":    {never, maybe, maybe, 1, false},
		"an error of an application": {errors.New("mine"), nil, &asterisque.Abort{Code: codec.Failed}, 0, false},
	} {
		first, second := asterisquetest.NewFake(t), asterisquetest.NewFake(t)
		var rec asterisquetest.Recorder
		answer := func(f *asterisquetest.Fake, err error) {
			asterisquetest.Answer(f, greet, func(context.Context, string) (string, error) { return "", err })
		}
		answer(first, c.first)
		answer(second, c.second)
		_, err := greet.Call(background, failover{first, asterisque.Intercept(second, rec.Intercept)}, "x")
		if c.want == nil {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, c.want, name)
		}
		require.Equal(t, c.repeatable, asterisque.Repeatable(err), name)
		require.Len(t, rec.Calls(), c.asked, name)
	}
}

// A wrapper can change the content of a call.
func TestWrapper_ChangesCall(t *testing.T) {
	peer := newPeer(t)
	got, err := greet.Call(background, upper{peer}, "x")
	require.NoError(t, err)
	require.Equal(t, "hello, X!", got)
	n, err := sumOf(background, upper{peer}, 1, 2)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	_, err = greet.Call(background, tenant{peer, "acme", map[uint16]bool{10: true}}, "x")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.True(t, asterisque.Repeatable(err))
	var rec asterisquetest.Recorder
	_, err = greet.Call(background, tenant{on: asterisque.Intercept(peer, rec.Intercept), name: "acme"}, "x")
	require.NoError(t, err)
	require.Equal(t, "acme", rec.Calls()[0].Metadata.Text("tenant"))
}

// A cache answers without a call.
func TestCache_Answers(t *testing.T) {
	var rec asterisquetest.Recorder
	k := &cache{on: asterisque.Intercept(newPeer(t), rec.Intercept), known: map[string]any{}}
	for range 3 {
		got, err := greet.Call(background, k, "x")
		require.NoError(t, err)
		require.Equal(t, "hello, x", got)
	}
	require.Equal(t, []string{"x"}, asterisquetest.ParamsOf(t, &rec, greet))
}
