package calls

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Calls that wait for a worker run by priority, and then arrival.
func TestPriority_ThenArrival(t *testing.T) {
	var mu sync.Mutex
	var order []string
	gate, running := make(chan struct{}), make(chan struct{}, 1)
	svc := asterisque.NewService()
	svc.Handle(1, "note", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		select {
		case running <- struct{}{}:
			<-gate // the first one
		default:
		}
		mu.Lock()
		defer mu.Unlock()
		order = append(order, string(params))
		return nil, nil
	})
	highest := priority.Priority(50)
	p, _ := testkit.DialRaw(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), asterisque.WithPriorities(asterisque.Priorities{Highest: &highest}))
	calls := []message.Open{
		{Priority: 0, Params: []byte("first")},
		{Priority: 0, Params: []byte("a")},
		{Priority: -128, Params: []byte("last")},
		{Priority: 50, Params: []byte("urgent")},
		{Priority: 127, Params: []byte("capped")},
		{Priority: 0, Params: []byte("b")},
	}
	for i := range calls {
		calls[i].Pipe, calls[i].Function = uint64(2*i), 1
		p.Send(&calls[i])
		if i == 0 {
			<-running
			running <- struct{}{}
		}
	}
	p.Send(message.Ping{}) // behind them, so that its answer says that all have arrived
	for _, err := message.ParseControl(p.Frame()); err != nil; _, err = message.ParseControl(p.Frame()) {
	}
	close(gate)
	for range calls {
		p.Close()
	}
	require.Equal(t, []string{"first", "urgent", "capped", "a", "b", "last"}, order)
}

// The priority of a pipe counts in both directions.
func TestPriority_BothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		answer := make(chan struct{})
		svc.Handle(1, "answer", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			<-answer
			return make([]byte, 60_000), nil
		})
		p, s := testkit.StuckPeer(t, asterisque.WithService(svc), asterisque.WithPriorities(asterisque.Priorities{LowerShare: -1}))
		priorities := []int8{1, -5, 7, 3, 0}
		for i, prio := range priorities {
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 1, Priority: prio})
		}
		fill, err := s.Open(testkit.Background, 1, nil, asterisque.WithPriority(priority.Max))
		require.NoError(t, err)
		for range 4 { // more than the wire takes
			_, err := fill.Post(make([]byte, 60_000))
			require.NoError(t, err)
		}
		synctest.Wait()
		close(answer)
		synctest.Wait()
		var order []uint64
		for len(order) < len(priorities) {
			if c, err := message.ParseClose(p.Frame()); err == nil {
				order = append(order, c.Pipe)
			}
		}
		require.Equal(t, []uint64{4, 6, 0, 8, 2}, order, "the answers leave by the priority of their calls")
	})
}
