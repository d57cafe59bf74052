package sessions

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// TestNil_MethodsReturn calls each method of nil with zero arguments, except for a context.
func TestNil_MethodsReturn(t *testing.T) {
	for _, nothing := range []any{(*asterisque.Session)(nil), (*asterisque.Connection)(nil)} {
		v := reflect.ValueOf(nothing)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			t.Run(v.Type().String()+"."+m.Name, func(t *testing.T) {
				call := v.Method(i)
				var args []reflect.Value
				for j := range call.Type().NumIn() - btoi(call.Type().IsVariadic()) {
					arg := reflect.New(call.Type().In(j)).Elem()
					switch arg.Type() {
					case reflect.TypeFor[*asterisque.Call]():
						arg.Set(reflect.ValueOf(new(asterisque.Call)))
					case reflect.TypeFor[context.Context]():
						arg.Set(reflect.ValueOf(testkit.Background))
					}
					args = append(args, arg)
				}
				for _, out := range call.Call(args) {
					switch out.Type() {
					case reflect.TypeFor[error]():
						err, _ := out.Interface().(error)
						require.ErrorIs(t, err, asterisque.ErrUnavailable)
						require.True(t, asterisque.Repeatable(err))
					case reflect.TypeFor[<-chan struct{}]():
						<-out.Interface().(<-chan struct{})
					}
				}
			})
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestNil_CallsSayWhy(t *testing.T) {
	plain := asterisque.SessionOf(testkit.Background)
	require.Nil(t, plain)
	var lost *asterisque.Connection
	stream := asterisque.Stream[string, string, string, string](50, "stream")
	for name, c := range map[string]struct {
		on   asterisque.Caller
		want string
	}{
		"a session":                 {plain, "SessionOf found none in this context"},
		"a session, intercepted":    {asterisque.Intercept(plain), "SessionOf found none in this context"},
		"a connection":              {lost, "the *Connection is nil"},
		"a connection, intercepted": {asterisque.Intercept(lost), "the *Connection is nil"},
	} {
		for kind, call := range map[string]func() error{
			"typed":    func() error { _, err := testkit.Echo.Call(testkit.Background, c.on, "x"); return err },
			"untyped":  func() error { _, err := asterisque.CallOn(testkit.Background, c.on, 1, nil); return err },
			"a pipe":   func() error { _, err := asterisque.OpenOn(testkit.Background, c.on, 1, nil); return err },
			"a stream": func() error { _, err := stream.Open(testkit.Background, c.on, "x"); return err },
			"durable": func() error {
				_, err := testkit.Echo.Call(testkit.Background, c.on, "x", asterisque.WithDurable(), asterisque.WithIdempotencyKey([]byte("0123456789abcdef")))
				return err
			},
		} {
			err := call()
			require.ErrorIs(t, err, asterisque.ErrUnavailable, "%s on %s", kind, name)
			require.ErrorContains(t, err, c.want, "%s on %s", kind, name)
			require.True(t, asterisque.Repeatable(err), "%s on %s", kind, name)
		}
	}
}

func TestService_ZeroIsEmpty(t *testing.T) {
	var empty, svc asterisque.Service
	require.Empty(t, empty.Functions())
	require.Empty(t, empty.Stats())
	testkit.Echo.Handle(&svc, func(_ context.Context, text string) (string, error) { return text, nil })
	here, there := testkit.NewNode(t, asterisque.WithService(&empty)), testkit.NewNode(t, asterisque.WithService(&svc))
	dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
	got, err := testkit.Echo.Call(testkit.Background, dialled, "x")
	require.NoError(t, err)
	require.Equal(t, "x", got)
	_, err = testkit.Echo.Call(testkit.Background, accepted, "x")
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
}

// The zero Node, and a closed one, return errors.
func TestNode_ZeroAndClosed(t *testing.T) {
	closed := asterisque.NewNode()
	require.NoError(t, closed.Close())
	for want, node := range map[string]*asterisque.Node{
		"make it with NewNode": new(asterisque.Node),
		"the node is closed":   closed,
	} {
		for name, use := range map[string]func() error{
			"Dial": func() error { _, err := node.Dial(testkit.Background, "tcp://127.0.0.1:1"); return err },
			"Connect": func() error {
				conn, err := node.Connect(testkit.Background, "tcp://127.0.0.1:1", asterisque.ReconnectConfig{})
				require.Nil(t, conn)
				return err
			},
			"ListenAndServe": func() error { return node.ListenAndServe(testkit.Background, "tcp://127.0.0.1:1") },
			"Serve": func() error {
				ln, err := wire.Listen(testkit.Background, "tcp://127.0.0.1:0", wire.Options{})
				require.NoError(t, err)
				return node.Serve(testkit.Background, ln)
			},
			"Attach": func() error { a, _ := wire.Pipe(); _, err := node.Attach(testkit.Background, a); return err },
			"Accept": func() error { a, _ := wire.Pipe(); _, err := node.Accept(testkit.Background, a); return err },
		} {
			err := use()
			require.ErrorIs(t, err, asterisque.ErrUnavailable, name)
			require.ErrorContains(t, err, want, name)
		}
		require.NotPanics(t, func() { node.Close(); node.Shutdown(testkit.Background); node.Stats(); node.Sessions(); node.ID() }, want)
	}
}
