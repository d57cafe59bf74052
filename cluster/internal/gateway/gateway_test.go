package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// greetService has the function of the endpoints.
func greetService() *asterisque.Service {
	svc := asterisque.NewService()
	asterisque.Func[string, string](10, "greet").Handle(svc, func(_ context.Context, name string) (string, error) { return name, nil })
	return svc
}

func TestEndpoint_PeerRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opt  asterisque.Option
		want string
	}{
		"no JSON": {asterisque.WithCodecs(codec.CBOR), "codec"},
		"not let in": {asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			require.Equal(t, "mem", p.RemoteAddr.Network())
			return nil, asterisque.ErrUnauthorized.Withf("no %s here", p.ID)
		}}), "no nats endpoint here"},
		"not known": {asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return nil, errors.New("no database")
		}}), "could not be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				svc := greetService()
				node := asterisque.NewNode(asterisque.WithService(svc), test.opt)
				defer node.Close()
				_, err := Open(t.Context(), Config{Name: "orders", Endpoints: []Endpoint{{Function: 10}}, Service: svc, Node: node})
				require.ErrorContains(t, err, `does not let the peer "nats endpoint" in`)
				require.ErrorContains(t, err, test.want)
			})
		})
	}
}

func TestEndpoint_ContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		svc := greetService()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithAccess(asterisque.Access{
			Accept: func(ctx context.Context, _ asterisque.Peer) (*asterisque.Grant, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}))
		defer node.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := Open(ctx, Config{Name: "orders", Endpoints: []Endpoint{{Function: 10}}, Service: svc, Node: node})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestEndpoint_None(t *testing.T) {
	t.Parallel()
	e, err := newEndpoints(t.Context(), nil, "orders", nil, nil, nil)
	require.NoError(t, err)
	require.Empty(t, e.of(10))
	require.NoError(t, e.close(t.Context()))
}

func TestTools_BadVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "v1.2.3", "1.2", "1.2.3-01", "1.2.3 "} {
		_, err := Open(t.Context(), Config{Name: "orders", ID: "a", Version: version})
		require.ErrorContains(t, err, "no semantic version, such as 1.4.0", version)
	}
}
