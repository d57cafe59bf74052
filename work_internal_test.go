package asterisque

import (
	"context"
	"encoding/binary"
	"flag"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// TestKeys_CostNothingAfterUse makes calls with different keys, of which none is remembered.
func TestKeys_CostNothingAfterUse(t *testing.T) {
	distinct := 30_000
	if f := flag.Lookup("soak"); f != nil && f.Value.String() == "true" {
		distinct = 2_000_000
	}
	svc := NewService()
	svc.Handle(1, "keyed", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil },
		WithKey(func(params []byte) uint64 { return binary.BigEndian.Uint64(params) }), WithConcurrency(4))
	here, there := NewNode(), NewNode(WithService(svc))
	defer here.Close()
	defer there.Close()
	a, b := wire.Pipe()
	go there.Accept(context.Background(), b)
	s, err := here.Attach(context.Background(), a)
	require.NoError(t, err)

	const callers = 16
	use := func(from, to int) {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for n := from + i; n < to; n += callers {
					if _, err := s.Call(context.Background(), 1, binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	use(0, 5000)
	before, goroutines := weightest.Heap(), runtime.NumGoroutine()
	use(5000, distinct)
	// memory of other tests may be released meanwhile
	require.LessOrEqual(t, weightest.HeldSince(before, 512<<10), 512<<10)
	// idle workers may have ended before, and callers end a little later
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+2*callers)

	here.Close() // no call runs afterwards
	there.Close()
	h := svc.all()[1]
	require.Eventually(t, func() bool { return h.Key.Keys.Len() == 0 }, waitForWorkers, tick)
	free, waiting := h.Limit.State()
	require.Equal(t, 4, free)
	require.Zero(t, waiting)
}

// The longest wait of a test for workers, and the interval of its checks.
const (
	waitForWorkers = 2 * time.Minute
	tick           = time.Millisecond
)
