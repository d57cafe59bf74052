package asterisque_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// waits is how many parallel tests run at once: those are parallel that wait.
const waits = 8

func TestMain(m *testing.M) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(waits))
	}
	leak.Main(m)
}

var background = context.Background()

// connect returns both ends of a session over TCP loopback. The accepting side offers server; opts
// are for both nodes, which close with the test.
func connect(t testing.TB, server *asterisque.Service, opts ...asterisque.Option) (dialled, accepted *asterisque.Session) {
	t.Helper()
	here := asterisque.NewNode(opts...)
	there := asterisque.NewNode(append(opts, asterisque.WithService(server))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	return connectNodes(t, here, there)
}

// connectNodes connects two nodes over TCP loopback.
func connectNodes(t testing.TB, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	accepts := make(chan *asterisque.Session, 1)
	go func() {
		defer close(accepts)
		w, err := ln.Accept()
		if err != nil {
			return
		}
		if s, err := there.Accept(background, w); err == nil {
			accepts <- s
		}
	}()
	dialled, err = here.Dial(background, ln.URL())
	require.NoError(t, err)
	accepted = <-accepts
	require.NotNil(t, accepted)
	return dialled, accepted
}

var echo = asterisque.Func[string, string](10, "echo")

func echoService() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	return svc
}

// waitForContext is a handler that takes no Block and waits for the end of its call.
func waitForContext(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// unbuffered returns two wires over a connection that holds nothing: a write waits for its read.
func unbuffered() (a, b wire.Wire) {
	c, d := net.Pipe()
	return wire.FromConn(c), wire.FromConn(d)
}

func asAbort(err error, a **asterisque.Abort) bool { return errors.As(err, a) }

// soak lets some tests run as long as their figures ask for.
var soak = flag.Bool("soak", false, "run the long versions of the tests that have one")

var errBroken = errors.New("broken")
