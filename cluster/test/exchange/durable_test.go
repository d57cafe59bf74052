package exchange_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/pool"
)

// TestDurable_OtherReplica ends the replica that runs the call.
func TestDurable_OtherReplica(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, url := bridge(t, b, exchange.Config{Policy: everybody})
	where := asterisque.Func[string, string](60, "where")
	var begun atomic.Bool
	running := make(chan string, 1)
	replicas := make(map[string]*cluster.Cluster)
	for _, id := range []string{"one", "other"} {
		svc := asterisque.NewService()
		where.Handle(svc, func(ctx context.Context, _ string) (string, error) {
			if !begun.Swap(true) {
				running <- id
				<-ctx.Done()
				return "", ctx.Err()
			}
			return id, nil
		})
		durable := &cluster.Durable{Idempotent: []uint16{where.Number()}}
		replicas[id] = inCluster(t, b, cluster.Config{Name: "orders", ID: id, Service: svc, Durable: durable})
	}
	a := joined(t, url, "shop", "a")
	orders := callerOf(t, a, "orders")
	require.Eventually(t, func() bool {
		ready := slices.DeleteFunc(orders.Servers(), func(s pool.Server) bool { return !s.Ready })
		return len(ready) == len(replicas)
	}, enough, time.Millisecond)
	got := make(chan string, 1)
	go func() { // ends with the call
		at, err := where.Call(soon(t), orders, "is it", asterisque.WithDurable())
		if err != nil {
			at = err.Error()
		}
		got <- at
	}()
	first := <-running
	require.NoError(t, replicas[first].Close())
	delete(replicas, first)
	require.Contains(t, replicas, <-got)

	require.Eventually(t, func() bool {
		members, err := a.Members(soon(t), "orders")
		require.NoError(t, err)
		return len(members) == 1 && members[0].Durable
	}, enough, time.Millisecond, "the exchange hears of the end of a node")
}
