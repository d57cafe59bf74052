package exchange_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/priority"
)

// Features of a relayed session beyond calls.

// note runs in the order of priorities, and records its parameters.
var note = asterisque.Func[string, struct{}](10, "note")

// oneWorker returns a Pool for a node that runs one call at a time, the node, and the parameters of
// note there.
func oneWorker(t *testing.T) (p *pool.Pool, b *agent.Agent, notes chan string) {
	t.Helper()
	_, url := started(t, exchange.Config{Policy: everybody})
	notes = make(chan string, 100)
	svc := service("b", nil)
	note.Handle(svc, func(ctx context.Context, text string) (none struct{}, err error) {
		if _, ok := ctx.Deadline(); ok {
			text += ", in time"
		}
		notes <- text
		return none, nil
	})
	b = join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: svc},
		asterisque.WithWorkers(asterisque.Workers{Session: 1}))
	return callerOf(t, joined(t, url, "shop", "a"), "orders"), b, notes
}

func TestPassing_Priorities(t *testing.T) {
	t.Parallel()
	p, b, notes := oneWorker(t)
	busy := running(t, p)
	over := make(chan error, 2)
	for i, c := range []struct {
		text     string
		priority priority.Priority
	}{{"low", -10}, {"urgent", 100}} {
		go func() { // ends when busy is over
			_, err := note.Call(t.Context(), p, c.text, asterisque.WithPriority(c.priority))
			over <- err
		}()
		far := b.Node().Sessions()[0]
		require.Eventually(t, func() bool { return far.Stats().Waiting == i+1 }, enough, time.Millisecond)
	}
	busy.Abort(nil)
	for range 2 {
		require.NoError(t, <-over)
	}
	require.Equal(t, "urgent", <-notes)
	require.Equal(t, "low", <-notes)
}

func TestPassing_TimesToLive(t *testing.T) {
	t.Parallel()
	p, _, notes := oneWorker(t)
	busy := running(t, p)
	_, err := note.Call(t.Context(), p, "late", asterisque.WithTTL(100*time.Millisecond))
	require.ErrorIs(t, err, asterisque.ErrExpired)
	busy.Abort(nil)
	_, err = note.Call(t.Context(), p, "any time")
	require.NoError(t, err)
	_, err = note.Call(t.Context(), p, "soon", asterisque.WithTTL(enough))
	require.NoError(t, err)
	require.Equal(t, "any time", <-notes, "the late one has not run")
	require.Equal(t, "soon, in time", <-notes)
}

func TestPassing_LossRates(t *testing.T) {
	t.Parallel()
	const blocks = 100
	_, url := started(t, exchange.Config{Policy: everybody})
	svc := service("b", nil)
	missing := make(chan uint64, 1)
	svc.Handle(11, "counts", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		b, err := p.Recv(ctx)
		missing <- b.Skipped
		return nil, err
	})
	b := join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: svc})
	p := callerOf(t, joined(t, url, "shop", "a"), "orders")
	call, err := asterisque.OpenOn(t.Context(), p, 11, nil, asterisque.WithLoss(127))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(b.Node().Sessions()) == 1 }, enough, time.Millisecond)
	far := b.Node().Sessions()[0]
	var others []*asterisque.StreamCall[[]byte, []byte, struct{}]
	for range 20 {
		others = append(others, running(t, p))
	}
	far.StopReading() // nothing is read from its Wire
	var sent atomic.Int64
	for _, other := range others {
		go pour(other, &sent) // ends with the call
	}
	stands(t, &sent)
	for range blocks {
		_, err := call.Post([]byte("may be dropped"))
		require.NoError(t, err)
	}
	_, err = call.Post([]byte("may not"), pipe.WithLoss(0))
	require.NoError(t, err)
	far.StartReading()
	require.EqualValues(t, blocks, <-missing, "the sender was blocked, and losses are reported")
	for _, other := range others {
		other.Abort(nil)
	}
}
