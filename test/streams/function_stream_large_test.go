package streams

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestStream_LargeOverTCP holds many large Blocks for a while, so that memory that the library
// reuses too early is detected.
func TestStream_LargeOverTCP(t *testing.T) {
	fill := func(n int, seed byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = seed + byte(i*7) + byte(i>>8)
		}
		return b
	}
	svc := asterisque.NewService()
	var mu sync.Mutex
	kept := map[byte][]byte{} // guarded by mu: parameters, which belong to the handler
	svc.Handle(1, "keep", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		kept[params[0]] = params
		return params, nil
	})
	svc.Handle(2, "blocks", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		var held []pipe.Block
		for i := byte(0); ; i++ {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			held = append(held, b)
			if len(held) == 3 || i == 63 {
				for j, b := range held {
					if !bytes.Equal(b.Payload, fill(len(b.Payload), i-byte(len(held)-1-j))) {
						return nil, errors.New("a Block has changed")
					}
					b.Release()
				}
				held = nil
			}
		}
	})
	sess, _ := testkit.Connect(t, svc)
	sizes := []int{32 << 10, 20_000, 64 << 10, 100, 8 << 10, 100_000}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			p, err := sess.Open(testkit.Background, 2, nil)
			for i := byte(0); err == nil && i < 64; i++ {
				err = p.Send(testkit.Background, fill(sizes[int(i)%len(sizes)], i))
			}
			if err == nil {
				err = p.CloseSend()
			}
			if err == nil {
				_, err = p.Result(testkit.Background)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	results := map[byte][]byte{}
	for i := range byte(64) {
		r, err := sess.Call(testkit.Background, 1, fill(sizes[int(i)%len(sizes)], i))
		require.NoError(t, err)
		results[i] = r
	}
	wg.Wait()
	for i := range byte(64) {
		want := fill(sizes[int(i)%len(sizes)], i)
		require.True(t, bytes.Equal(want, results[i]), "result %d", i)
		require.True(t, bytes.Equal(want, kept[i]), "parameters %d", i)
	}
}
