package streams

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// TestStream_OneBlockNoCredit loses all credit for the pipe, in both directions: one Block each way
// needs none.
func TestStream_OneBlockNoCredit(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		opts []asterisque.Option
	}{
		"3 KiB":                   {3 << 10, nil},
		"16 KiB, with 64 workers": {16 << 10, []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 64})}},
	} {
		t.Run(name, func(t *testing.T) {
			svc := asterisque.NewService()
			svc.Handle(1, "mirror", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
				b, err := p.Recv(ctx)
				if err == nil {
					err = p.Send(ctx, b.Payload)
				}
				if err == nil {
					_, err = p.Recv(ctx) // the end: before that the caller could not say it
				}
				if err == io.EOF {
					err = nil
				}
				return nil, err
			})
			here := asterisque.NewNode(c.opts...)
			there := asterisque.NewNode(append(c.opts, asterisque.WithService(svc))...)
			t.Cleanup(func() { here.Close(); there.Close() })
			a, b := wire.Pipe()
			mean := &withoutGrants{Wire: a}
			dialled, _ := asterisquetest.ConnectOver(t, here, there, mean, b)
			ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
			defer cancel()
			p, err := dialled.Open(ctx, 1, nil)
			require.NoError(t, err)
			require.NoError(t, p.Send(ctx, make([]byte, c.size)))
			require.NoError(t, p.CloseSend())
			got, err := p.Recv(ctx)
			require.NoError(t, err)
			require.Len(t, got.Payload, c.size)
			_, err = p.Recv(ctx)
			require.Equal(t, io.EOF, err)
			_, err = p.Result(ctx)
			require.NoError(t, err)
			require.Empty(t, mean.asked(), "no pipe asks for room")
			require.Equal(t, 2, mean.blocks, "both have passed here")
		})
	}
}

// withoutGrants is a Wire that discards the Controls that grant credit to a pipe, and records those
// that request credit.
type withoutGrants struct {
	wire.Wire
	mu     sync.Mutex
	asks   [][]byte // guarded by mu
	blocks int      // guarded by mu; with a payload
}

const (
	creditCode = 4 // with null for the pipe it is for Opens
	askCode    = 9
	allowCode  = 10
)

func (w *withoutGrants) ReadFrame(limit int) ([]byte, error) {
	for {
		f, err := w.Wire.ReadFrame(limit)
		if err != nil || w.passes(f) {
			return f, err
		}
	}
}

func (w *withoutGrants) WriteFrames(frames [][]byte) error {
	var pass [][]byte
	for _, f := range frames {
		if w.passes(f) {
			pass = append(pass, f)
		}
	}
	return w.Wire.WriteFrames(pass)
}

// passes reports whether the Wire delivers a frame.
func (w *withoutGrants) passes(f []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, err := message.ParseBlock(f); err == nil && !b.End {
		w.blocks++
	}
	if kind, err := message.TypeOf(f); err != nil || kind != message.ControlType || len(f) < 4 {
		return true
	}
	const null = 0xf6
	switch code, first := f[2], f[3]; code { // an array, the type, the code, the pipe
	case askCode:
		w.asks = append(w.asks, append([]byte(nil), f...))
		return true
	case creditCode:
		return first == null
	default:
		return code != allowCode
	}
}

func (w *withoutGrants) asked() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asks
}
