package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// whoami answers with the name of its node. With "wait" it waits until its context ends.
var whoami = asterisque.Func[string, string](1, "whoami")

// ticks sends nothing, until its context ends.
var ticks = asterisque.Stream[string, string, string, string](2, "ticks")

// fenceService returns the service of a member. ran counts its calls.
func (m *claimant) fenceService() *asterisque.Service {
	svc := asterisque.NewService()
	whoami.Handle(svc, func(ctx context.Context, what string) (string, error) {
		m.ran.Add(1)
		if what == "wait" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return m.self.node, nil
	})
	ticks.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[string, string]) (string, error) {
		m.ran.Add(1)
		_, err := p.Recv(ctx)
		return m.self.node, err
	})
	return svc
}

// callable returns a session to a node with the fence of m.
func (m *claimant) callable(t testing.TB) *asterisque.Session {
	t.Helper()
	return fenceSessionTo(t, asterisque.WithService(m.fenceService()), asterisque.WithInboundInterceptors(newFence(m.claims).intercept))
}

// fenceSessionTo returns a session to a node with these options, over a Wire within this program.
func fenceSessionTo(t testing.TB, opts ...asterisque.Option) *asterisque.Session {
	t.Helper()
	here, there := asterisque.NewNode(), asterisque.NewNode(opts...)
	t.Cleanup(func() { here.Close(); there.Close() })
	a, b := wire.Pipe()
	accepted := make(chan error, 1)
	go func() { // ends with the handshake
		_, err := there.Accept(context.Background(), b)
		accepted <- err
	}()
	s, err := here.Attach(context.Background(), a)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	return s
}

// withMark returns a context that adds a claim mark to calls.
func withMark(ctx context.Context, name, value string) context.Context {
	return asterisque.ContextWithMetadata(ctx, asterisque.Metadata{name: value})
}

// requireNotRun requires that a call that failed with err was rejected, or not sent.
func requireNotRun(t testing.TB, m *claimant, ran int64, err error, is error) {
	t.Helper()
	require.ErrorIs(t, err, is)
	require.True(t, asterisque.Repeatable(err), err)
	require.Equal(t, ran, m.ran.Load())
}
