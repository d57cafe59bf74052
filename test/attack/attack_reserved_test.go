package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// Applications stop receiving after their Blocks have got credit, and keep the Blocks. A call with
// large parameters still runs, whatever their size.
func TestReserved_LargeCallBeside(t *testing.T) {
	type item struct{ A, B, C, D int64 }
	for _, size := range []int{20 << 20, 26 << 20} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			d := &dividing{handlers: make(chan *pipe.Pipe, 100)}
			svc := asterisque.NewService()
			svc.Handle(62, "is tapped", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
				d.handlers <- p
				<-ctx.Done()
				return nil, ctx.Err()
			})
			asterisque.Func[[]item, int](63, "takes items").Handle(svc, func(context.Context, []item) (int, error) { runs++; return 0, nil })
			d.node = testkit.NewNode(t, asterisque.WithService(svc))
			hello := testkit.Hello()
			hello.MaxMessage = 4 << 20
			d.RawPeer, d.promises = testkit.RawTo(t, d.node, hello)
			for i := range uint64(5) {
				d.receiverLeaves(t, i)
			}
			require.Greater(t, d.node.Stats().Total.Holding, 4<<20-64<<10, "one Block has the room for running calls")
			n := size / 32
			params := append(binary.BigEndian.AppendUint32([]byte{0x9a}, uint32(n)), bytes.Repeat([]byte{0xf6}, n)...)
			d.Send(&message.Open{Pipe: 100, Function: 63, Params: params})
			synctest.Wait()
			require.Equal(t, 1, runs, "%d bytes", size)
		})
	}
}
