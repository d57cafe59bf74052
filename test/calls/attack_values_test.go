package calls

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAttackErrors_Waiting makes many calls that fail with long errors, and reads no answer.
func TestAttackErrors_Waiting(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector adds to each object")
	}
	const calls, size = 300, 20_000
	svc := asterisque.NewService()
	asterisque.Func[int, int](1, "a number").Handle(svc, count[int](new(atomic.Int64)))
	svc.Handle(2, "says what it got", func(_ context.Context, _ *pipe.Pipe, b []byte) ([]byte, error) { return nil, fmt.Errorf("bad: %s", b) })
	svc.Handle(3, "the same", func(_ context.Context, p *pipe.Pipe, b []byte) ([]byte, error) { return nil, fmt.Errorf("bad: %s", b) }, asterisque.WithInline())
	for function, name := range map[uint16]string{1: "what cannot be decoded", 2: "of a handler", 3: "of an inline handler"} {
		t.Run(name, func(t *testing.T) {
			node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithCodecs(codec.JSON))
			defer node.Close()
			conns, sessions := testkit.Attackers(t, 1, node, testkit.HelloIn(codec.JSON))
			defer conns[0].Close() // before the node, which would wait for it
			params := bytes.Repeat([]byte("7"), size)
			grown := weightest.Grown(func() any {
				for id := range uint64(calls) {
					// An error means that the connection has ended.
					conns[0].Write(testkit.Frames(&message.Open{Pipe: 2 * id, Function: function, Params: params}))
				}
				require.Eventually(t, func() bool {
					st := sessions[0].Stats()
					return st.Outbound.Messages == calls && st.Running+st.Waiting == 0
				}, testkit.Patience, 10*time.Millisecond)
				return node
			})
			held := sessions[0].Stats().Outbound.Bytes
			require.LessOrEqual(t, held, calls*(codec.MaxReason+1024))
			attack.Bounded(t, "errors that wait: "+name, grown, held+held/8+256<<10)
		})
	}
}

// TestAttackValues_Deep makes short calls whose values need much stack to decode.
func TestAttackValues_Deep(t *testing.T) {
	var calls atomic.Int64
	svc := asterisque.NewService()
	anyOf.Handle(svc, count[any](&calls))
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithCodecs(codec.JSON))
	deep := func(levels int) []byte {
		return []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	}
	grown := weightest.Stack(func() {
		for range 20 {
			_, err := dialled.Call(testkit.Background, anyOf.Number(), deep(9000))
			wantTooMuch(t, err, asterisque.ErrBadParams)
		}
	})
	attack.Bounded(t, "stack for 20 values that are 9,000 deep", grown, 4<<20)
	_, err := dialled.Call(testkit.Background, anyOf.Number(), deep(50))
	require.NoError(t, err)
	require.EqualValues(t, 1, calls.Load())
	testkit.WantIdle(t, accepted)
}
