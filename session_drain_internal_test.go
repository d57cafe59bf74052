package asterisque

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// A call arrives when Shutdown has begun to refuse calls, and has not said so yet.
func TestTheEndIsAnnouncedBeforeACallIsRefusedForIt(t *testing.T) {
	svc := NewService()
	Func[struct{}, struct{}](10, "f").Handle(svc, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	node := NewNode(WithService(svc))
	defer node.Close()
	a, b := wire.Pipe()
	defer a.Close()
	sessions := make(chan *Session, 1)
	go func() { // ends with the handshake
		s, _ := node.Accept(context.Background(), b)
		sessions <- s
	}()
	require.NoError(t, a.WriteFrames([][]byte{codec.Sync{Version: codec.Version, MaxMessage: 1 << 20, Codecs: []string{"cbor"}}.AppendTo(nil)}))
	_, err := a.ReadFrame(1 << 10)
	require.NoError(t, err)
	s := <-sessions
	s.table.drainHere()

	require.NoError(t, a.WriteFrames([][]byte{(&codec.Open{Pipe: 0, Function: 10}).AppendTo(nil)}))
	var first codec.Control
	for first == nil {
		frame, err := a.ReadFrame(1 << 10)
		require.NoError(t, err)
		kind, err := codec.TypeOf(frame)
		require.NoError(t, err)
		require.Equal(t, codec.ControlType, kind, "not the refusal")
		if c, err := codec.ParseControl(frame); err == nil {
			if d, ok := c.(codec.Drain); ok {
				first = d
			}
		}
	}
	require.Equal(t, codec.Drain{None: true}, first)
}
