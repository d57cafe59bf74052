package exchange_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// enough is the time limit for an event that happens soon.
const enough = 2 * time.Minute

var (
	// whoami answers with the id of the node. back calls whoami on its caller and answers with
	// that.
	whoami = asterisque.Func[struct{}, string](1, "whoami")
	back   = asterisque.Func[struct{}, string](2, "back")

	// hold runs until its caller ends it, or is lost.
	hold = asterisque.Stream[struct{}, []byte, []byte, struct{}](3, "hold")

	everybody = []exchange.Rule{{From: exchange.Any, To: exchange.Any}}
	silent    = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// started returns an exchange that listens, and its URL, until the test ends.
func started(t testing.TB, cfg exchange.Config) (*exchange.Exchange, string) {
	t.Helper()
	return startedAt(t, cfg, "tcp://127.0.0.1:0", wire.Options{})
}

func startedAt(t testing.TB, cfg exchange.Config, url string, o wire.Options) (*exchange.Exchange, string) {
	t.Helper()
	cfg.Logger = silent
	x, err := exchange.New(cfg)
	require.NoError(t, err)
	ln, err := wire.Listen(t.Context(), url, o)
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() { over <- x.Serve(context.Background(), ln) }() // ends with the exchange
	t.Cleanup(func() {
		x.Close()
		if err := <-over; err != nil {
			require.ErrorIs(t, err, asterisque.ErrUnavailable, "it was closed before it began")
		}
	})
	return x, ln.URL()
}

// service returns the functions for tests.
func service(id string, ended chan<- error) *asterisque.Service {
	svc := asterisque.NewService()
	whoami.Handle(svc, func(context.Context, struct{}) (string, error) { return id, nil })
	back.Handle(svc, func(ctx context.Context, _ struct{}) (string, error) {
		caller, err := whoami.Call(ctx, asterisque.SessionOf(ctx), struct{}{})
		return id + " called by " + caller, err
	})
	hold.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (none struct{}, err error) {
		if err = p.Send(ctx, nil); err == nil { // it runs
			<-ctx.Done()
			err = ctx.Err()
		}
		if ended != nil {
			ended <- err
		}
		return none, err
	})
	return svc
}

// joined joins a node, until the test ends.
func joined(t testing.TB, url, name, id string, opts ...asterisque.Option) *agent.Agent {
	t.Helper()
	return join(t, agent.Config{Exchange: []string{url}, Name: name, ID: id}, opts...)
}

func join(t testing.TB, cfg agent.Config, opts ...asterisque.Option) *agent.Agent {
	t.Helper()
	if cfg.Service == nil {
		cfg.Service = service(cfg.ID, nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	a, err := agent.Join(ctx, cfg, append(opts, asterisque.WithLogger(silent))...)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// callerOf returns a Pool over the nodes of a name, which ends with the test.
func callerOf(t testing.TB, a *agent.Agent, name string, opts ...agent.CallerOption) *pool.Pool {
	t.Helper()
	quick := pool.Config{Connection: asterisque.ReconnectConfig{First: 20 * time.Millisecond, Most: 100 * time.Millisecond}}
	p, err := a.Caller(t.Context(), name, append([]agent.CallerOption{agent.WithPool(quick)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// soon returns a context for an event that happens soon.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	t.Cleanup(cancel)
	return ctx
}

// ask calls whoami.
func ask(t testing.TB, on asterisque.Caller) string {
	t.Helper()
	id, err := whoami.Call(soon(t), on, struct{}{})
	require.NoError(t, err)
	return id
}

// dialled returns a session with a node that listens at a TCP port, until the test ends.
func dialled(t testing.TB, node *asterisque.Node) *asterisque.Session {
	t.Helper()
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	go node.Serve(context.Background(), ln) // ends with the node
	caller := asterisque.NewNode(asterisque.WithLogger(silent))
	t.Cleanup(func() { caller.Close() })
	s, err := caller.Dial(soon(t), ln.URL())
	require.NoError(t, err)
	return s
}
