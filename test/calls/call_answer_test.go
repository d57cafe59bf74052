package calls

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAnswers_UnreadBounded uses a peer that calls and reads nothing. The queued answers are those
// of running calls, up to their limit, and those of calls admitted before that.
func TestAnswers_UnreadBounded(t *testing.T) {
	const room, result = 1 << 20, 16 << 10
	for name, c := range map[string]struct {
		nested  bool
		opts    []asterisque.HandlerOption
		running int // calls that may run at once
		calls   int // as many as are promised, and for those within calls more
	}{
		"of ordinary calls":     {false, nil, 64, 500},
		"of calls within calls": {true, nil, 32 * 64, 2500},
		"of an inline function": {false, []asterisque.HandlerOption{asterisque.WithInline()}, 64, 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc := testkit.CallsBackService()
				svc.Handle(60, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, result), nil }, c.opts...)
				p, s := testkit.StuckPeer(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 64}),
					asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(room, 4*room), Outbound: testkit.BytesOf(room, 4*room)}))
				first := uint64(0)
				var meta message.Meta
				if c.nested {
					p.Send(&message.Open{Pipe: 0, Function: 51})
					meta, first = message.Meta{Nested: true, Within: p.Open().Pipe}, 2
				}
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for i := range uint64(c.calls) {
						p.W.WriteFrames([][]byte{(&message.Open{Pipe: first + 2*i, Function: 60, Meta: meta}).AppendTo(nil)})
					}
				}()
				synctest.Wait()
				st := s.Stats()
				require.NoError(t, s.Err())
				require.Positive(t, st.Parked)
				require.Less(t, st.Holding, 3*room+c.running*(result+512), "the number of calls makes no difference")
				s.Close()
				<-sent
			})
		})
	}
}
