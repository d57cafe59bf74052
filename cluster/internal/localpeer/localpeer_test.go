package localpeer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/localpeer"
	"github.com/asterisque-go/asterisque/codec"
)

func TestPeer_Calls(t *testing.T) {
	t.Parallel()
	from := asterisque.Func[struct{}, string](1, "from")
	svc := asterisque.NewService()
	from.Handle(svc, func(ctx context.Context, _ struct{}) (string, error) {
		peer := asterisque.SessionOf(ctx).Peer()
		return peer.ID + " " + peer.RemoteAddr.Network(), nil
	})
	node := asterisque.NewNode(asterisque.WithService(svc))
	defer node.Close()
	p, err := localpeer.Connect(t.Context(), node, "queue", codec.CBOR)
	require.NoError(t, err)
	text, err := from.Call(t.Context(), p.Connection(), struct{}{})
	require.NoError(t, err)
	require.Equal(t, "queue mem", text)
	p.Close()
	require.ErrorIs(t, context.Cause(p.Context()), localpeer.ErrLeaving)
}

func TestConnect_Rejected(t *testing.T) {
	t.Parallel()
	why := errors.New("no peers today")
	node := asterisque.NewNode(asterisque.WithAccess(asterisque.Access{
		Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { return nil, why },
	}))
	defer node.Close()
	_, err := localpeer.Connect(t.Context(), node, "queue", codec.CBOR)
	require.ErrorContains(t, err, why.Error())
	require.ErrorContains(t, err, `"queue"`)
}
