package interceptors_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

var (
	echo  = asterisque.Func[string, string](10, "echo")
	other = asterisque.Func[string, string](11, "other")
	chat  = asterisque.Stream[string, string, string, string](12, "chat")
)

// serving is a service with h as the handler of all functions.
func serving(h func(ctx context.Context, s string) (string, error), opts ...asterisque.HandlerOption) asterisque.Option {
	svc := asterisque.NewService()
	echo.Handle(svc, h, opts...)
	other.Handle(svc, h, opts...)
	chat.Handle(svc, func(ctx context.Context, s string, _ *asterisque.Pipe[string, string]) (string, error) {
		return h(ctx, s)
	}, opts...)
	return asterisque.WithService(svc)
}

// says returns its parameter.
func says(_ context.Context, s string) (string, error) { return s, nil }

// waits waits for the end of its context.
func waits(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func made(around ...asterisque.Interceptor) asterisque.Option {
	return asterisque.WithOutboundInterceptors(around...)
}

func served(around ...asterisque.Interceptor) asterisque.Option {
	return asterisque.WithInboundInterceptors(around...)
}

// node returns a node that closes with the test.
func node(t testing.TB, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// connect returns the end of here of a session in memory.
func connect(t testing.TB, here, there *asterisque.Node) *asterisque.Session {
	t.Helper()
	return connectFrom(t, here, there, nil)
}

// connectFrom is connect with an address for the node here.
func connectFrom(t testing.TB, here, there *asterisque.Node, at net.Addr) *asterisque.Session {
	t.Helper()
	near, far := wire.Pipe()
	if at != nil {
		far = from{far, at}
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		_, err := there.Accept(background, far)
		require.NoError(t, err)
	})
	s, err := here.Attach(background, near)
	require.NoError(t, err)
	accepting.Wait()
	return s
}

// from is a Wire with a given address of the peer.
type from struct {
	wire.Wire
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// call calls echo. stream calls chat and returns its result.
func call(ctx context.Context, on asterisque.Caller, s string) (string, error) {
	return echo.Call(ctx, on, s)
}

func stream(ctx context.Context, on asterisque.Caller, s string) (string, error) {
	p, err := chat.Open(ctx, on, s)
	if err != nil {
		return "", err
	}
	return p.Result(background)
}

// kinds are the kinds of calls that tests make in the same way.
var kinds = map[string]func(context.Context, asterisque.Caller, string) (string, error){"call": call, "stream": stream}

// took returns the duration of f.
func took(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}
