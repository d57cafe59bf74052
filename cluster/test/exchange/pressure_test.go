package exchange_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

// pour sends on a call until it ends, and counts the sent bytes.
func pour(call *asterisque.StreamCall[[]byte, []byte, struct{}], sent *atomic.Int64) {
	block := make([]byte, 32<<10)
	for call.Send(context.Background(), block) == nil {
		sent.Add(int64(len(block)))
	}
}

// stands waits until a number stops changing.
func stands(t *testing.T, n *atomic.Int64) {
	t.Helper()
	last := int64(-1)
	require.Eventually(t, func() bool {
		now := n.Load()
		defer func() { last = now }()
		return now > 0 && now == last
	}, enough, 200*time.Millisecond)
}

const mostHeld = 16 << 20 // maximum bytes of the exchange for a few blocked sessions

func TestPressure_SlowReceiver(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "shop", "a"), joined(t, url, "orders", "b")
	p := callerOf(t, a, "orders")
	call := running(t, p)
	var sent atomic.Int64
	go pour(call, &sent) // ends with the call
	stands(t, &sent)
	require.Less(t, sent.Load(), int64(mostHeld))
	require.Less(t, x.Stats().Node.Held, mostHeld)
	require.Equal(t, "b", ask(t, p), "on the same session")
	require.Equal(t, "b", ask(t, callerOf(t, joined(t, url, "", "c"), "orders")), "on another one")
	call.Abort(nil)
	require.NoError(t, b.Err())
}

func TestPressure_OtherSessions(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	a, b := joined(t, url, "shop", "a"), joined(t, url, "orders", "b")
	taking := asterisque.Stream[struct{}, []byte, []byte, struct{}](8, "taking")
	svc := service("c", nil)
	taking.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (none struct{}, err error) {
		for err == nil {
			_, err = p.Recv(ctx)
		}
		return none, err
	})
	join(t, agent.Config{Exchange: []string{url}, Name: "store", ID: "c", Service: svc})
	p := callerOf(t, a, "orders")
	call := running(t, p)
	paused := b.Node().Sessions()[0]
	paused.StopReading() // nothing is read from its Wire
	var sent, passed atomic.Int64
	go pour(call, &sent) // ends with the call
	stands(t, &sent)
	require.Less(t, x.Stats().Node.Held, mostHeld)
	other, err := taking.Open(t.Context(), callerOf(t, a, "store"), struct{}{})
	require.NoError(t, err)
	go pour(other, &passed) // ends with the call
	require.Eventually(t, func() bool { return passed.Load() > 4<<20 }, enough, time.Millisecond)
	require.Equal(t, "b", ask(t, callerOf(t, joined(t, url, "", "d"), "orders")), "the node accepts other sessions")
	paused.StartReading()
	before := sent.Load()
	require.Equal(t, "b", ask(t, p), "nothing is lost")
	require.GreaterOrEqual(t, sent.Load(), before)
	call.Abort(nil)
	other.Abort(nil)
}

func TestPressure_UrgentCall(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	ended := make(chan error, 2)
	join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: service("b", ended)})
	p := callerOf(t, joined(t, url, "shop", "a"), "orders")
	call := running(t, p)
	var sent atomic.Int64
	go pour(call, &sent) // ends with the call
	for range 50 {
		_, err := whoami.Call(soon(t), p, struct{}{}, asterisque.WithPriority(100))
		require.NoError(t, err)
	}
	require.Positive(t, sent.Load())
	call.Abort(nil)
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestPassing_LargeMessages(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	echo := asterisque.Func[[]byte, []byte](9, "echo")
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
	join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: svc})
	p := callerOf(t, joined(t, url, "shop", "a"), "orders")
	for _, n := range []int{0, 60 << 10, 64 << 10, 65 << 10, 66 << 10, 128 << 10, 1 << 20} {
		want := bytes.Repeat([]byte{byte(n >> 10)}, n)
		got, err := echo.Call(soon(t), p, want, asterisque.WithMetadata(asterisque.Metadata{"k": strings.Repeat("x", 4000)}))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), n)
	}
}
