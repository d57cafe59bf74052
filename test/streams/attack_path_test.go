package streams

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// plainWire has only the methods of Wire.
type plainWire struct{ wire.Wire }

// sinks is a service with a function 1 that takes all Blocks, and returns their total size.
func sinks(taken func(n int)) *asterisque.Service {
	svc := testkit.EchoService()
	svc.Handle(1, "sink", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if errors.Is(err, io.EOF) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			taken(len(b.Payload))
			b.Release()
		}
	})
	return svc
}

// A Wire that counts no bytes is as fast.
func TestPath_WireWithoutMeter(t *testing.T) {
	testkit.SkipRace(t)
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(sinks(func(n int) { total.Add(int64(n)) })))
		defer func() { here.Close(); there.Close() }()
		way := wiretest.Lane{Delay: 5 * time.Millisecond, Rate: 50e6}
		a, b := wiretest.NewLink(wiretest.LinkConfig{Out: way, In: way}).Pipe()
		s, _ := asterisquetest.ConnectOver(t, here, there, plainWire{wire.FromConn(a)}, plainWire{wire.FromConn(b)})
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		begin := time.Now()
		for time.Since(begin) < 5*time.Second {
			require.NoError(t, p.Send(testkit.Background, make([]byte, 32<<10)))
		}
		require.Greater(t, total.Load(), int64(5*40_000_000))
	})
}

// TestAttackPath_SlowLink uses a round trip that is longer than the pauses after which marks carry
// no information, and a queue before anything is known.
func TestAttackPath_SlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 4 * time.Second
		f := overLink(t, 8000, trip)
		defer f.close()
		f.flood(1, 0)
		f.worst(2 * time.Minute)
		f.count()
		const measured = 10 * time.Minute
		require.Less(t, f.worst(measured), 2*trip+trip/40, "with one small frame before it")
		require.Greater(t, float64(f.count())/measured.Seconds(), 0.75*8000)
	})
}
