package calls

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// A service describes itself only if it chose to.
func TestDescribe_Chosen(t *testing.T) {
	svc := testkit.EchoService()
	dialled, _ := testkit.Connect(t, svc)
	_, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
	require.ErrorIs(t, err, asterisque.ErrNoFunction)

	svc = testkit.EchoService()
	svc.Describe()
	asterisque.Stream[string, int, float64, bool](11, "mix").Handle(svc, func(context.Context, string, *asterisque.Pipe[float64, int]) (bool, error) { return true, nil })
	dialled, _ = testkit.Connect(t, svc)
	list, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
	require.NoError(t, err)
	require.Equal(t, []asterisque.FunctionInfo{
		{Number: 10, Name: "echo", Signature: "func(string) string"},
		{Number: 11, Name: "mix", Signature: "func(string) bool, caller sends int, callee sends float64"},
		{Number: 65_535, Name: "describe", Signature: "func(asterisque.DescribeQuery) []asterisque.FunctionInfo"},
	}, list)
}

// The specification has the keys of describe.
func TestDescribe_KeysOfSpec(t *testing.T) {
	text, err := os.ReadFile("../../spec/protocol.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## 15. Standard functions\n")
	for _, typ := range []reflect.Type{reflect.TypeFor[asterisque.DescribeQuery](), reflect.TypeFor[asterisque.FunctionInfo]()} {
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("cbor"), ",")
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			require.Contains(t, section, "\n| "+key+" | "+name+" | ", typ.Name())
		}
	}
}

// described is a service that describes itself to peers with a grant.
func described() *asterisque.Service {
	svc := testkit.EchoService()
	svc.Describe(asterisque.WithGrantOnly())
	return svc
}

// With WithGrantOnly, describe is only for peers with a grant.
func TestDescribe_GrantOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := asterisque.NewNode(asterisque.WithService(described()), asterisque.WithAccess(asterisque.Access{
			Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
				switch p.ID {
				case "tool":
					return &asterisque.Grant{Describe: true}, nil
				case "guest":
					return &asterisque.Grant{Subject: "guest"}, nil
				}
				return nil, nil
			},
		}))
		defer there.Close()
		for _, id := range []string{"tool", "guest", "nobody", "tool", "guest"} {
			here := asterisque.NewNode(asterisque.WithID(id), asterisque.WithService(described()))
			dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
			_, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
			if id == "tool" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, asterisque.ErrNoFunction, id)
				require.True(t, asterisque.Repeatable(err), "it is refused as a function is that is not there")
				_, other := asterisque.Func[int, int](65_279, "nothing").Call(testkit.Background, dialled, 1)
				require.Equal(t, "function 65279", codec.AbortOf(other).Message)
				require.Equal(t, "function 65535", codec.AbortOf(err).Message)
			}
			got, err := testkit.Echo.Call(testkit.Background, dialled, id)
			require.NoError(t, err)
			require.Equal(t, id, got, "all else is offered")
			_, err = asterisque.Describe.Call(testkit.Background, accepted, asterisque.DescribeQuery{})
			require.ErrorIs(t, err, asterisque.ErrNoFunction, "the side that dialled grants nothing")
			here.Close()
		}
	})
}

// A grant of describe has no effect if the service has none.
func TestDescribe_UselessGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		accept := func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Describe: true}, nil
		}
		dialled, _ := testkit.InMemory(t, testkit.EchoService(), asterisque.WithAccess(asterisque.Access{Accept: accept}))
		_, err := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
		require.ErrorIs(t, err, asterisque.ErrNoFunction)
	})
}

// A resume decides again whether a peer may describe.
func TestDescribe_Resume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := described()
		k := testkit.NewDoorkeeper(t)
		grant := func(describe bool) { k.Grants(&asterisque.Grant{Service: svc, Describe: describe}, nil) }
		ask := func(p *testkit.RawPeer, pipe uint64) *asterisque.Abort {
			p.Send(&message.Open{Pipe: pipe, Function: asterisque.Describe.Number(), Params: []byte{0xa0}})
			return p.Answer().Abort
		}
		grant(true)
		p, first := testkit.RawTo(t, k.Node, testkit.Resumable())
		first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
		require.Nil(t, ask(p, 0))

		grant(false)
		p.W.Close()
		synctest.Wait()
		p, second := testkit.RawTo(t, k.Node, testkit.Resuming(first, 1))
		require.Equal(t, first.Session, second.Session)
		second.Session, second.Secret = bytes.Clone(second.Session), bytes.Clone(second.Secret)
		require.Equal(t, codec.NoFunction, ask(p, 2).Code)

		grant(true)
		p.W.Close()
		synctest.Wait()
		p, third := testkit.RawTo(t, k.Node, testkit.Resuming(second, 2))
		require.Equal(t, first.Session, third.Session)
		require.Nil(t, ask(p, 4))
	})
}
