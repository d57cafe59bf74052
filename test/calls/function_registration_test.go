package calls

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// line returns the source position the given number of lines below its caller.
func line(below int) string {
	_, file, at, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, at+below)
}

func noHandler(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil }

// Two functions with one number panic, with both places.
func TestHandle_FunctionTwice(t *testing.T) {
	svc := asterisque.NewService()
	first := line(1)
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	for kind, register := range map[string]func(){
		"untyped": func() { svc.Handle(testkit.Echo.Number(), "other", noHandler) },
		"unary":   func() { asterisque.Func[int, int](testkit.Echo.Number(), "other").Handle(svc, add) },
		"stream": func() {
			asterisque.Stream[int, int, int, int](testkit.Echo.Number(), "other").Handle(svc, addStream)
		},
	} {
		text := testkit.PanicOf(t, register)
		require.Contains(t, text, `function 10 is registered twice: "other" at `, kind)
		require.Contains(t, text, "function_registration_test.go:", kind)
		require.Contains(t, text, `before that "echo" at `+first, kind)
		require.Contains(t, text, "give one of them another number", kind)
	}
	require.Equal(t, "echo", svc.Functions()[0].Name, "the first one stays")
	svc.Remove(testkit.Echo.Number())
	svc.Handle(testkit.Echo.Number(), "other", noHandler)
	require.Equal(t, "other", svc.Functions()[0].Name)
}

func add(_ context.Context, n int) (int, error) { return n + 1, nil }

func addStream(_ context.Context, n int, _ *asterisque.Pipe[int, int]) (int, error) {
	return n + 1, nil
}

// A nil handler panics at its registration.
func TestHandle_Nil(t *testing.T) {
	svc := asterisque.NewService()
	for place, register := range map[string]func(){
		line(0): func() { svc.Handle(1, "nothing", nil) },
		line(0): func() { asterisque.Func[int, int](1, "nothing").Handle(svc, nil) },
		line(0): func() { asterisque.Stream[int, int, int, int](1, "nothing").Handle(svc, nil) },
	} {
		require.Contains(t, testkit.PanicOf(t, register), `function 1 "nothing" is registered at `+place+" with a nil handler")
	}
	require.Contains(t, testkit.PanicOf(t, func() { asterisque.WithKey[int, int](nil) }), "WithKey of nil at ")
	require.Contains(t, testkit.PanicOf(t, func() { asterisque.WithKey[[]byte, int](nil) }), "WithKey of nil at ")
	require.Empty(t, svc.Functions())
}

// Only the library may register numbers of standard functions.
func TestHandle_StandardFunctions(t *testing.T) {
	svc := asterisque.NewService()
	for number, register := range map[uint16]func(){
		65_280: func() { svc.Handle(65_280, "mine", noHandler) },
		65_400: func() { asterisque.Func[int, int](65_400, "mine").Handle(svc, add) },
		65_534: func() { asterisque.Stream[int, int, int, int](65_534, "mine").Handle(svc, addStream) },
		65_535: func() { svc.Handle(asterisque.Describe.Number(), "mine", noHandler) },
	} {
		text := testkit.PanicOf(t, register)
		require.Contains(t, text, fmt.Sprintf(`function %d "mine" is registered at `, number))
		require.Contains(t, text, "function_registration_test.go:")
		require.Contains(t, text, "numbers from 65280 on belong to the standard functions")
		require.Contains(t, text, "give it a lower number")
	}
	require.Empty(t, svc.Functions())
	svc.Handle(0, "first", noHandler)
	svc.Handle(65_279, "last", noHandler)
	svc.Describe()
	require.Len(t, svc.Functions(), 3)
	svc.Remove(65_535)
	require.Len(t, svc.Functions(), 2)
}

// A Service cannot change while it is served.
func TestService_FixedWhileServed(t *testing.T) {
	svc := testkit.EchoService()
	made := line(1)
	there := asterisque.NewNode(asterisque.WithService(svc))
	// no session is served yet
	testkit.Block.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	here := asterisque.NewNode()
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, _ := asterisquetest.ConnectNodes(t, here, there)

	place := line(1)
	text := testkit.PanicOf(t, func() { svc.Handle(12, "late", noHandler) })
	require.Contains(t, text, `function 12 "late" is registered at `+place)
	require.Contains(t, text, "by the node that was made at "+made)
	require.Contains(t, text, "make another Service")

	place = line(1)
	text = testkit.PanicOf(t, func() { svc.Remove(testkit.Echo.Number()) })
	require.Contains(t, text, `function 10 "echo" is removed at `+place)
	require.Contains(t, text, "by the node that was made at "+made)
	require.Contains(t, testkit.PanicOf(t, func() { testkit.Echo.Handle(svc, nil) }), "nil handler")

	got, err := testkit.Echo.Call(testkit.Background, dialled, "it continues")
	require.NoError(t, err)
	require.Equal(t, "it continues", got)
}

// A Service is served as soon as its node listens.
func TestService_FixedOnListen(t *testing.T) {
	svc := testkit.EchoService()
	node := asterisque.NewNode(asterisque.WithService(svc))
	defer node.Close()
	ctx, cancel := context.WithCancel(testkit.Background)
	cancel()
	ln, err := wire.Listen(testkit.Background, "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	require.NoError(t, node.Serve(ctx, ln))
	require.Contains(t, testkit.PanicOf(t, func() { svc.Handle(12, "late", noHandler) }), "by the node that was made at ")
}

// A granted Service cannot change.
func TestService_FixedOnGrant(t *testing.T) {
	granted := testkit.EchoService()
	accept := line(1)
	there := asterisque.NewNode(asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Service: granted}, nil
	}}))
	here := asterisque.NewNode()
	t.Cleanup(func() { here.Close(); there.Close() })
	granted.Handle(11, "early", noHandler)
	asterisquetest.ConnectNodes(t, here, there)
	text := testkit.PanicOf(t, func() { granted.Handle(12, "late", noHandler) })
	require.Contains(t, text, "granted to a peer by the function of Access.Accept at "+accept)
}
