package pool_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// yielding is a Resolver that yields these values, one after the other, and ends.
func yielding(all ...any) pool.Resolver {
	return func(context.Context) iter.Seq2[[]pool.Address, error] {
		return func(yield func([]pool.Address, error) bool) {
			for _, one := range all {
				set, _ := one.([]pool.Address)
				err, _ := one.(error)
				if !yield(set, err) {
					return
				}
			}
		}
	}
}

func TestNew_ResolverErrors(t *testing.T) {
	node := asterisque.NewNode()
	defer node.Close()
	away := errors.New("the registry is away")
	for name, c := range map[string]struct {
		resolve pool.Resolver
		want    error
		text    string
	}{
		"none":                 {nil, asterisque.ErrUnavailable, "use Fixed"},
		"no server":            {pool.Fixed(), asterisque.ErrUnavailable, "the set of servers is empty"},
		"one twice":            {pool.Fixed("tcp://a:1", "tcp://b:1", "tcp://A:1"), asterisque.ErrUnavailable, "tcp://A:1 is in the set twice"},
		"no URL":               {pool.Fixed("a:1"), wire.ErrURL, "a:1"},
		"no such scheme":       {pool.Fixed("pigeon://a"), wire.ErrURL, "pigeon"},
		"an error":             {yielding(away), away, "the registry is away"},
		"an empty set":         {yielding([]pool.Address{}), asterisque.ErrUnavailable, "empty"},
		"nothing":              {yielding(), asterisque.ErrUnavailable, "has ended without naming any"},
		"a panic":              {func(context.Context) iter.Seq2[[]pool.Address, error] { panic("mine") }, asterisque.ErrPanicked, "pool.Resolver panicked"},
		"an end of its thread": {func(context.Context) iter.Seq2[[]pool.Address, error] { runtime.Goexit(); return nil }, asterisque.ErrPanicked, "ended its goroutine"},
		"a nil sequence":       {func(context.Context) iter.Seq2[[]pool.Address, error] { return nil }, asterisque.ErrPanicked, "pool.Resolver panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(background, hung)
			defer cancel()
			p, err := pool.New(ctx, node, c.resolve, pool.Config{})
			require.Nil(t, p)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestNew_NilNode(t *testing.T) {
	_, err := pool.New(background, nil, pool.Fixed("tcp://a:1"), pool.Config{})
	require.ErrorContains(t, err, "a pool needs a node")
}

// TestResolver_ErrorKeepsSet has a Resolver that fails permanently after its first set.
func TestResolver_ErrorKeepsSet(t *testing.T) {
	s := newServer(t, "a")
	failing := make(chan struct{})
	p := newPoolOf(t, func(ctx context.Context) iter.Seq2[[]pool.Address, error] {
		return func(yield func([]pool.Address, error) bool) {
			yield([]pool.Address{{URL: s.url}}, nil)
			yield(nil, errors.New("the name has vanished"))
			yield([]pool.Address{}, nil)
			close(failing)
			<-ctx.Done()
		}
	}, pool.Config{})
	<-failing
	name, err := whoami.Call(background, p, 0)
	require.NoError(t, err)
	require.Equal(t, "a", name)
	s.kill()
	_, err = whoami.Call(background, p, 0, asterisque.WithTTL(100*time.Millisecond))
	require.ErrorContains(t, err, "the set of servers is empty", "the error contains the last error of the Resolver")
}

// TestNew_Background has a Resolver that fails at first.
func TestNew_Background(t *testing.T) {
	s := newServer(t, "a")
	answer := make(chan struct{})
	node := asterisque.NewNode()
	defer node.Close()
	p, err := pool.New(background, node, func(ctx context.Context) iter.Seq2[[]pool.Address, error] {
		return func(yield func([]pool.Address, error) bool) {
			if yield(nil, errors.New("no such name yet")) {
				<-answer
				yield([]pool.Address{{URL: s.url}}, nil)
			}
		}
	}, pool.Config{Connection: asterisque.ReconnectConfig{Background: true}})
	require.NoError(t, err)
	defer p.Close()
	_, err = whoami.Call(background, p, 0, asterisque.WithTTL(50*time.Millisecond))
	require.ErrorIs(t, err, asterisque.ErrExpired)
	require.ErrorContains(t, err, "no such name yet")
	close(answer)
	name, err := whoami.Call(background, p, 0)
	require.NoError(t, err)
	require.Equal(t, "a", name)
}

// TestPool_EndsCalls ends a pool in different ways while a call waits for a server.
func TestPool_EndsCalls(t *testing.T) {
	for name, end := range map[string]func(p *pool.Pool, n *asterisque.Node, cancel func()){
		"Close":            func(p *pool.Pool, _ *asterisque.Node, _ func()) { p.Close() },
		"Shutdown":         func(p *pool.Pool, _ *asterisque.Node, _ func()) { p.Shutdown(background) },
		"its life":         func(_ *pool.Pool, _ *asterisque.Node, cancel func()) { cancel() },
		"that of its node": func(_ *pool.Pool, n *asterisque.Node, _ func()) { n.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "a")
			s.kill()
			node := asterisque.NewNode()
			defer node.Close()
			life, cancel := context.WithCancel(background)
			defer cancel()
			p, err := pool.New(life, node, pool.Fixed(s.url), pool.Config{})
			require.NoError(t, err)
			defer p.Close()
			ended := make(chan error)
			go func() { // ends with the call
				_, err := whoami.Call(background, p, 0)
				ended <- err
			}()
			end(p, node, cancel)
			err = <-ended
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.True(t, asterisque.Repeatable(err))
			_, err = whoami.Call(background, p, 0)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			_, err = whoami.Call(background, p.At(s.url), 0)
			require.Error(t, err)
		})
	}
}

// TestResolver_IgnoresContext has a Resolver that blocks for ever.
func TestResolver_IgnoresContext(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	node := asterisque.NewNode()
	defer node.Close()
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := pool.New(ctx, node, func(context.Context) iter.Seq2[[]pool.Address, error] {
		return func(yield func([]pool.Address, error) bool) { <-never }
	}, pool.Config{})
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestPool_UnusableURL has servers that can never be connected to: a call for these alone does not
// wait for them.
func TestPool_UnusableURL(t *testing.T) {
	const bad, worse = "unix://run/app.sock", "tcp://127.0.0.1"
	s := newServer(t, "a")
	alone, beside := newPool(t, []string{bad, worse}, pool.Config{}), newPool(t, []string{bad, s.url}, pool.Config{})
	for name, on := range map[string]asterisque.Caller{
		"any of them": alone, "by a key": alone.ByKey("k"), "sticky": alone.Sticky(), "one of them": alone.At(bad), "one beside a good one": beside.At(bad),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := whoami.Call(background, on, 0)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorIs(t, err, wire.ErrURL)
			require.ErrorContains(t, err, "unix:///run/app.sock", "how the URL should look")
			require.True(t, asterisque.Repeatable(err))
		})
	}
	for _, on := range []asterisque.Caller{beside, beside.ByKey("k"), beside.ByKey("l"), beside.Sticky()} {
		name, err := whoami.Call(background, on, 0)
		require.NoError(t, err)
		require.Equal(t, "a", name)
	}
}
