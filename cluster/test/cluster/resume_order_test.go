package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// crossing takes the count of numbers that each side sends, while the other side sends its own.
var crossing = asterisque.Stream[int, int, int, int](3, "crossing")

// sends sends the numbers from 0.
func sends(ctx context.Context, n int, send func(context.Context, int) error) error {
	for i := range n {
		if err := send(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// expects receives the numbers from 0, and calls each after each of them.
func expects(ctx context.Context, n int, receive func(context.Context) (int, error), each func(i int)) error {
	for i := range n {
		switch got, err := receive(ctx); {
		case err != nil:
			return err
		case got != i:
			return fmt.Errorf("%d came in the place of %d", got, i)
		}
		each(i)
	}
	return nil
}

// crosses sends and expects numbers at the same time.
func crosses(ctx context.Context, n int, send func(context.Context, int) error, receive func(context.Context) (int, error), each func(i int)) error {
	sent := make(chan error, 1)
	go func() { sent <- sends(ctx, n, send) }() // ends with the call
	return errors.Join(expects(ctx, n, receive, each), <-sent)
}

func TestResume_OrderAcrossNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		const numbers, each = 5000, 250
		svc := asterisque.NewService()
		crossing.Handle(svc, func(ctx context.Context, n int, p *asterisque.Pipe[int, int]) (int, error) {
			return n, crosses(ctx, n, p.Send, p.Recv, func(int) {})
		})
		b, nodes, balance := natstest.StartServer(t, broker.Config{}), []*cluster.Cluster(nil), new(balancer)
		for _, id := range []string{"a", "b", "c"} {
			cfg := anywhere(config(b, "orders", id))
			nodes = append(nodes, joined(t, cfg, append(resuming, asterisque.WithService(svc))...))
		}
		conn := balance.connect(t, nodes[0])
		first := conn.Session()
		call, err := crossing.Open(t.Context(), conn, numbers)
		require.NoError(t, err)
		require.NoError(t, crosses(t.Context(), numbers, call.Send, call.Recv, func(i int) {
			if i%each == 0 {
				balance.lead(nodes[i/each%3])
			}
		}))
		_, err = call.Result(t.Context())
		require.NoError(t, err)
		require.Same(t, first, conn.Session())
		require.Empty(t, nodes[1].Node().Sessions())
		require.Empty(t, nodes[2].Node().Sessions())
	})
}
