package parts

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// restarted is a server that is replaced repeatedly, and counts its calls.
type restarted struct {
	t    *testing.T
	ran  sync.Map // of the numbers of calls
	made atomic.Uint64

	mu   sync.Mutex
	node *asterisque.Node // guarded by mu, as url
	url  string
}

// replace starts a server, and returns the previous one, or nil.
func (r *restarted) replace() (old *asterisque.Node) {
	svc := asterisque.NewService()
	note := func(params []byte) { r.ran.Store(binary.BigEndian.Uint64(params), true) }
	svc.Handle(1, "unary", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		note(params)
		return params[:8], nil
	})
	svc.Handle(2, "stream", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		note(params)
		return params[:8], p.Send(ctx, []byte("a Block"))
	})
	node := asterisque.NewNode(asterisque.WithService(svc))
	url := testkit.Serve(r.t, node)
	r.mu.Lock()
	defer r.mu.Unlock()
	old, r.node, r.url = r.node, node, url
	return old
}

func (r *restarted) dial(ctx context.Context) (wire.Wire, error) {
	r.mu.Lock()
	url := r.url
	r.mu.Unlock()
	return wire.Dial(ctx, url, wire.Options{})
}

// call makes one call with size bytes of parameters, and returns its number.
func (r *restarted) call(on asterisque.Caller, size int, stream bool) (n uint64, err error) {
	n = r.made.Add(1)
	params := make([]byte, max(size, 8))
	binary.BigEndian.PutUint64(params, n)
	if !stream {
		_, err = asterisque.CallOn(testkit.Background, on, 1, params)
		return n, err
	}
	p, err := asterisque.OpenOn(testkit.Background, on, 2, params)
	if err == nil {
		_, err = p.Result(testkit.Background)
		p.Abort(nil) // and its Block
	}
	return n, err
}

// TestShutdown_AnySizeRestarts gracefully replaces a server while calls of all sizes are made:
// those that have not run report that. On a Connection and a Pool no unary one fails, and no stream
// that has run.
func TestShutdown_AnySizeRestarts(t *testing.T) {
	restarts := testkit.Long(4, 10)
	r := &restarted{t: t}
	r.replace()
	t.Cleanup(func() { r.node.Close() })
	here := testkit.NewNode(t)
	how := asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond}
	servers, err := pool.New(testkit.Background, here, pool.Fixed("tcp://a:1", "tcp://b:1"), pool.Config{
		Connection: how, Dial: func(ctx context.Context, _ pool.Address) (wire.Wire, error) { return r.dial(ctx) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { servers.Close() })
	how.Dial = r.dial
	conn, err := here.Connect(testkit.Background, "", how)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })

	type failure struct {
		n   uint64
		err error
	}
	var (
		stop    atomic.Bool
		callers sync.WaitGroup
		good    atomic.Int64
		mu      sync.Mutex
		failed  []failure // on sessions
	)
	for _, size := range []int{1, 60_000, 100_000, 1_000_000, 4_000_000} {
		for _, stream := range []bool{false, true} {
			for _, on := range []asterisque.Caller{nil, conn, servers} {
				callers.Go(func() {
					for !stop.Load() {
						to := on
						if s := conn.Session(); on == nil && s != nil {
							to = s
						}
						if to == nil {
							runtime.Gosched()
							continue
						}
						n, err := r.call(to, size, stream)
						switch {
						case err == nil:
							good.Add(1)
						case on != nil && !stream: // a pipe that its caller has is not made again
							t.Errorf("%T, %d bytes, stream %v: %v", on, size, stream, err)
						default:
							mu.Lock()
							failed = append(failed, failure{n, fmt.Errorf("%d bytes, stream %v: %w", size, stream, err)})
							mu.Unlock()
						}
					}
				})
			}
		}
	}
	for range restarts {
		before := good.Load()
		require.Eventually(t, func() bool { return good.Load() > before+100 || t.Failed() }, time.Minute, time.Millisecond)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		require.NoError(t, r.replace().Shutdown(ctx))
		cancel()
	}
	stop.Store(true)
	callers.Wait()
	t.Logf("%d calls, and %d on sessions were refused", good.Load(), len(failed))
	for _, f := range failed {
		_, ran := r.ran.Load(f.n)
		require.False(t, ran, "the drain waits for what runs: %v", f.err)
		require.Equal(t, !ran, asterisque.Repeatable(f.err), "ran %v: %v", ran, f.err)
	}
}

// TestShutdown_SoftLimit shuts a session down while refusals wait for its outbound soft limit, and
// requires that all of them are sent before the session closes.
func TestShutdown_SoftLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivedRig(t, false)
		one := limits.Limits{Soft: limits.Amount{Messages: 1}}
		require.NoError(t, r.s.SetLimits(r.s.Limits(asterisque.Inbound), one))
		const calls = 5
		for i := range uint64(calls) {
			r.say(&message.Open{Pipe: r.own(1 + i), Function: 77})
		}
		synctest.Wait()
		require.Positive(t, r.s.Stats().Parked, "a refusal waits")
		r.other.Abort(nil)
		done := make(chan error, 1)
		go func() { done <- r.s.Shutdown(testkit.Background) }()
		synctest.Wait()
		r.listen()
		require.NoError(t, r.outcome(done))
		<-r.over
		require.Len(t, r.got, calls+1, "with that of the stream")
	})
}
