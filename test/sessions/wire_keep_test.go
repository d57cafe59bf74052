package sessions

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// keepingWire is a Wire from outside of this module: it allocates memory for each frame, which the
// session then owns.
type keepingWire struct {
	wire.Wire
	last *transport.Buffer
	left *atomic.Int64 // how many frames
	how  func()        // what Keep does besides, or nil
}

func (w *keepingWire) ReadFrame(max int) ([]byte, error) {
	if w.last != nil {
		w.last.Release()
		w.last = nil
	}
	frame, err := w.Wire.ReadFrame(max)
	if err != nil {
		return nil, err
	}
	w.last = transport.TakeBuffer(len(frame))
	return w.last.B[:copy(w.last.B, frame)], nil
}

func (w *keepingWire) Buffered() bool { return false }

func (w *keepingWire) Keep() *transport.Buffer {
	if w.how != nil {
		w.how()
	}
	mem := w.last
	w.last = nil
	w.left.Add(1)
	return mem
}

// sumSession is a session over a keepingWire. The accepting side adds up the bytes of a stream.
func sumSession(t *testing.T, how func(), opts ...asterisque.Option) (s *asterisque.Session, left *atomic.Int64) {
	svc := asterisque.NewService()
	svc.Handle(20, "sum", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		var sum byte
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return []byte{sum}, nil
			} else if err != nil {
				return nil, err
			}
			for _, c := range b.Payload {
				sum += c
			}
			b.Release()
		}
	})
	here, there := asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	a, b := wire.Pipe()
	left = new(atomic.Int64)
	s, _ = asterisquetest.ConnectOver(t, here, there, a, &keepingWire{Wire: b, left: left, how: how})
	return s, left
}

// A Wire of a third party transfers the memory of its frames.
func TestKeep_ThirdPartyWire(t *testing.T) {
	// In a bubble the path has no delay, so that no Block is divided.
	synctest.Test(t, func(t *testing.T) {
		s, left := sumSession(t, nil)
		p, err := s.Open(testkit.Background, 20, nil)
		require.NoError(t, err)
		var want byte
		for i := range 100 {
			block := make([]byte, 60_000)
			for j := range block {
				block[j] = byte(i + j*j)
				want += block[j]
			}
			require.NoError(t, p.Send(testkit.Background, block))
			synctest.Wait() // for its credit: a Block that does not fit into the window is divided
		}
		require.NoError(t, p.CloseSend())
		got, err := p.Result(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, []byte{want}, got)
		require.EqualValues(t, 100, left.Load())
	})
}

// A Wire that does not return from Keep affects only its session.
func TestKeep_DoesNotReturn(t *testing.T) {
	for told, how := range map[string]func(){"wire panicked": func() { panic("odd") }, "wire ended its goroutine": runtime.Goexit} {
		t.Run(told, func(t *testing.T) {
			var log testkit.Logged
			s, _ := sumSession(t, how, asterisque.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			p, err := s.Open(testkit.Background, 20, nil)
			require.NoError(t, err)
			p.Send(testkit.Background, make([]byte, 60_000))
			_, err = p.Result(testkit.Background)
			require.ErrorIs(t, err, codec.ErrSessionClosed)
			require.Contains(t, log.String(), told)
		})
	}
}
