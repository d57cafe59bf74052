package pool_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// keyLog records the idempotency keys of the calls on each server.
type keyLog struct {
	mu   sync.Mutex
	keys map[string][]string // by server; guarded by mu, as all below
	// number of calls that each server rejects
	refuses map[string]int
}

func (l *keyLog) at(name string) asterisque.Option {
	return asterisque.WithInboundInterceptors(func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		l.mu.Lock()
		l.keys[name] = append(l.keys[name], string(c.IdempotencyKey()))
		refuses := l.refuses[name] > 0
		l.refuses[name]--
		l.mu.Unlock()
		if refuses {
			return c.Refuse(asterisque.ErrUnavailable.Withf("not now"))
		}
		return next(ctx, c)
	})
}

// all returns the keys of all calls, and the names of their servers.
func (l *keyLog) all() (keys, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, of := range l.keys {
		keys, names = append(keys, of...), append(names, name)
	}
	return slices.Compact(slices.Sorted(slices.Values(keys))), names
}

// sharing starts servers of these names, and returns a pool of them. Servers with capital names
// have answers of their own.
func sharing(t testing.TB, names ...string) (map[string]*server, *pool.Pool, *keyLog) {
	l := &keyLog{keys: make(map[string][]string), refuses: make(map[string]int)}
	servers := make(map[string]*server)
	var set []pool.Address
	for _, name := range names {
		s := newServer(t, name, l.at(name))
		servers[name] = s
		a := pool.Address{URL: s.url, Answers: "shared"}
		if name < "a" {
			a.Answers = ""
		}
		set = append(set, a)
	}
	p := newPoolOf(t, func(context.Context) iter.Seq2[[]pool.Address, error] {
		return func(yield func([]pool.Address, error) bool) { yield(set, nil) }
	}, pool.Config{})
	ready(t, p, len(names))
	return servers, p, l
}

func TestDurable_SharedAnswers(t *testing.T) {
	inBubble(t, func(t testing.TB) {
		servers, p, l := sharing(t, "a", "b", "A", "B")
		answer := make(chan string, 1)
		on := p.ByKey("one that a or b has")
		for i := 0; ; i++ {
			name, err := whoami.Call(background, p.ByKey(string(rune('k'+i))), 0)
			require.NoError(t, err)
			if name > "Z" {
				on = p.ByKey(string(rune('k' + i)))
				break
			}
		}
		l.mu.Lock()
		clear(l.keys)
		l.mu.Unlock()
		go func() { // ends with the call
			name, err := whoami.Call(background, on, 300, asterisque.WithDurable(), asterisque.WithTTL(time.Minute))
			if err != nil {
				name = err.Error()
			}
			answer <- name
		}()
		require.Eventually(t, func() bool { _, names := l.all(); return len(names) == 1 }, hung, time.Millisecond)
		_, names := l.all()
		servers[names[0]].kill()
		other := map[string]string{"a": "b", "b": "a"}[names[0]]
		require.Equal(t, other, <-answer)
		keys, names := l.all()
		require.Len(t, keys, 1, "of all attempts")
		require.Len(t, keys[0], 16)
		require.ElementsMatch(t, []string{"a", "b"}, names)
	})
}

func TestDurable_RefusedAfterRun(t *testing.T) {
	inBubble(t, func(t testing.TB) {
		servers, p, l := sharing(t, "a", "b")
		answer := make(chan error, 1)
		go func() { // ends with the call
			_, err := whoami.Call(background, p, 300, asterisque.WithDurable(), asterisque.WithTTL(time.Minute))
			answer <- err
		}()
		require.Eventually(t, func() bool { _, names := l.all(); return len(names) == 1 }, hung, time.Millisecond)
		_, names := l.all()
		l.mu.Lock()
		l.refuses[map[string]string{"a": "b", "b": "a"}[names[0]]] = 3
		l.mu.Unlock()
		servers[names[0]].kill()
		require.NoError(t, <-answer)
	})
}

func TestDurable_OwnKey(t *testing.T) {
	_, p, l := sharing(t, "a", "b")
	for range 5 {
		_, err := whoami.Call(background, p, 0, asterisque.WithIdempotencyKey([]byte("sixteen bytes...")))
		require.NoError(t, err)
	}
	keys, _ := l.all()
	require.Equal(t, []string{"sixteen bytes..."}, keys)
}

// TestDurable_EndsWithItsContextAndWithThePool first ends the session of durable calls. Then it
// ends the context of one of them, at once or when the pool has no server left.
func TestDurable_EndsWithItsContextAndWithThePool(t *testing.T) {
	for _, wait := range []bool{false, true} {
		for range 20 {
			servers, p, l := sharing(t, "a")
			ctx, cancel := context.WithCancel(background)
			canceled, goesOn := make(chan error, 1), make(chan error, 1)
			for ctx, answer := range map[context.Context]chan error{ctx: canceled, background: goesOn} {
				go func() { // ends with the call
					_, err := whoami.Call(ctx, p, int(time.Hour/time.Millisecond), asterisque.WithDurable())
					answer <- err
				}()
			}
			require.Eventually(t, func() bool { keys, _ := l.all(); return len(keys) == 2 }, hung, time.Millisecond)
			servers["a"].kill()
			if wait {
				ready(t, p, 0)
			}
			cancel()
			err := <-canceled
			require.ErrorIs(t, err, context.Canceled)
			require.False(t, asterisque.Repeatable(err), "it may have run")
			p.Close()
			err = <-goesOn
			require.Error(t, err)
			require.False(t, asterisque.Repeatable(err), "it may have run")
		}
	}
}
