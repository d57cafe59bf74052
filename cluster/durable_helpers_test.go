package cluster

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
)

// book runs once for each call, as rebook may more often.
var (
	book   = asterisque.Func[int, string](20, "book")
	rebook = asterisque.Func[int, string](21, "rebook")
)

// bookingTime bounds what is waited for, however slow all is: servers may have to agree who leads.
const bookingTime = 2 * time.Minute

// bookings are replicas of a name that remember durable calls together.
type bookings struct {
	t    testing.TB
	b    *broker.Broker
	runs atomic.Int64 // calls that have begun, at whichever replica

	within asterisque.Interceptor // what stands around the functions of the next replica; nil: none
}

func newBookings(t testing.TB) *bookings {
	return &bookings{t: t, b: start(t, broker.Config{})}
}

// replica is one of them, with a session of a caller.
type replica struct {
	*Cluster
	t       testing.TB
	session *asterisque.Session
	kv      *faultyKV // its bucket
}

// does is what a replica does for a call.
type does func(ctx context.Context, n int) (string, error)

func answers(text string) does {
	return func(context.Context, int) (string, error) { return text, nil }
}

// holds answers once it is told to, or when it is ended.
func holds(text string) (f does, release func()) {
	free := make(chan struct{})
	f = func(ctx context.Context, _ int) (string, error) {
		select {
		case <-free:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return f, func() { close(free) }
}

// replica joins one.
func (s *bookings) replica(id string, f does, change ...func(*Config)) *replica {
	s.t.Helper()
	return s.replicaFor(id, f, nil, nil, change...)
}

// replicaFor is replica with options of it, and of its caller.
func (s *bookings) replicaFor(id string, f does, opts, callers []asterisque.Option, change ...func(*Config)) *replica {
	s.t.Helper()
	cfg := listening(config(s.b, "orders", id))
	cfg.Durable = &Durable{InMemory: true, Share: 1, Lease: longestLease, Idempotent: []uint16{rebook.Number()}, Remember: 2 * longestLease}
	for _, by := range change {
		by(&cfg)
	}
	c := joined(s.t, cfg, append([]asterisque.Option{s.service(f)}, opts...)...)
	r := &replica{Cluster: c, t: s.t}
	if c.durable != nil {
		r.kv = &faultyKV{KeyValue: c.durable.store.kv}
		c.durable.store.kv = r.kv
	}
	r.session = r.dialled(callers...)
	return r
}

// service lets a node run the functions by f, which is counted.
func (s *bookings) service(f does) asterisque.Option {
	svc := asterisque.NewService()
	if s.within != nil {
		svc.Intercept(s.within)
	}
	counted := func(ctx context.Context, n int) (string, error) {
		s.runs.Add(1)
		return f(ctx, n)
	}
	book.Handle(svc, counted)
	rebook.Handle(svc, counted)
	return asterisque.WithService(svc)
}

// dialled returns a session with the replica of a caller of its own.
func (r *replica) dialled(opts ...asterisque.Option) *asterisque.Session {
	r.t.Helper()
	node := asterisque.NewNode(opts...)
	r.t.Cleanup(func() { node.Close() })
	s, err := node.Dial(r.t.Context(), r.self.self.Addresses[0])
	require.NoError(r.t, err)
	return s
}

// lease sets the lease of a replica.
func lease(d time.Duration) func(*Config) {
	return func(c *Config) { c.Durable.Lease = d }
}

// aKey returns a key that nobody guesses.
func aKey() []byte { return []byte(rand.Text()[:16]) }

// books makes a call with a key.
func (r *replica) books(key []byte) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bookingTime)
	defer cancel()
	return book.Call(ctx, r.session, 1, asterisque.WithIdempotencyKey(key))
}

// outcome is that of a call that is made on another goroutine.
type outcome struct {
	text string
	err  error
}

// begins makes a call with a key, and returns once so many have begun in all.
func (s *bookings) begins(r *replica, key []byte, runs int64) <-chan outcome {
	s.t.Helper()
	out := make(chan outcome, 1)
	go func() { // ends with the call
		text, err := r.books(key)
		out <- outcome{text, err}
	}()
	require.Eventually(s.t, func() bool { return s.runs.Load() == runs }, bookingTime, time.Millisecond)
	return out
}

// requireText expects that a call has succeeded.
func requireText(t testing.TB, want string, out <-chan outcome) {
	t.Helper()
	select {
	case got := <-out:
		require.NoError(t, got.err)
		require.Equal(t, want, got.text)
	case <-time.After(bookingTime):
		t.Fatal("the call is not over")
	}
}

// booksAtLast books again while NATS is too busy to say what became of the call before.
func (r *replica) booksAtLast(key []byte) (text string, err error) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if text, err = r.books(key); !asterisque.Repeatable(err) {
			break
		}
	}
	return text, err
}

// requireUnused expects that a call was refused before it ran.
func requireUnused(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.True(t, asterisque.Repeatable(err), "%v", err)
}

// requireMayHaveRun expects that a call may have run.
func requireMayHaveRun(t testing.TB, want error, err error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.False(t, asterisque.Repeatable(err), "%v", err)
}

// state returns that of the record of a call.
func (r *replica) state(key []byte) durableState {
	e, err := r.durable.store.read(context.Background(), r.durable.callOf("", key, 0, nil).name)
	if err != nil || e.record == nil {
		return ""
	}
	return e.record.State
}

// awaitWaiters waits until so many repetitions wait.
func (r *replica) awaitWaiters(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.durable.waiters) == n }, bookingTime, time.Millisecond)
}

// revision returns that of the record of a call.
func (r *replica) revision(key []byte) uint64 {
	e, err := r.durable.store.read(context.Background(), r.durable.callOf("", key, 0, nil).name)
	if err != nil {
		return 0
	}
	return e.revision
}

// bySubject returns options of a replica that believes callers who they are, and of a caller.
func bySubject(name string) (replica, caller []asterisque.Option) {
	return []asterisque.Option{asterisque.WithAccess(asterisque.Access{
			PlainCredentials: true,
			Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
				return &asterisque.Grant{Subject: string(p.Credential)}, nil
			},
		})}, []asterisque.Option{asterisque.WithAccess(asterisque.Access{
			PlainCredentials: true,
			Credential:       func(context.Context, asterisque.Peer) ([]byte, error) { return []byte(name), nil },
		})}
}

// runsNow returns how many calls run, or wait for those that run elsewhere.
func (d *durables) runsNow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs
}
