package exchange_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

const passing = 100 // sessions while the exchange is killed

// mirror sends each Block back.
var mirror = asterisque.Stream[struct{}, []byte, []byte, struct{}](9, "mirror")

func mirrors(svc *asterisque.Service) *asterisque.Service {
	mirror.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (none struct{}, err error) {
		for {
			b, err := p.Recv(ctx)
			if err == nil {
				err = p.Send(ctx, b)
			}
			if err != nil {
				return none, err
			}
		}
	})
	return svc
}

// passingSessions returns a stream in each of many sessions, between two nodes with two exchange
// URLs.
func passingSessions(t *testing.T, urls []string, opts ...asterisque.Option) []*asterisque.StreamCall[[]byte, []byte, struct{}] {
	t.Helper()
	join(t, agent.Config{Exchange: urls, Name: "orders", ID: "b", Service: mirrors(service("b", nil))}, opts...)
	a := join(t, agent.Config{Exchange: urls, Name: "shop", ID: "a"}, opts...)
	var all []*asterisque.StreamCall[[]byte, []byte, struct{}]
	for range passing {
		call, err := mirror.Open(t.Context(), callerOf(t, a, "orders"), struct{}{})
		require.NoError(t, err)
		require.NoError(t, count(t.Context(), call, 0, 1))
		all = append(all, call)
	}
	return all
}

// count sends numbers and expects them back, each once and in order.
func count(ctx context.Context, call *asterisque.StreamCall[[]byte, []byte, struct{}], from, to uint64) error {
	for n := from; n < to; n++ {
		if err := call.Send(ctx, binary.BigEndian.AppendUint64(nil, n)); err != nil {
			return err
		}
		b, err := call.Recv(ctx)
		if err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(b); got != n {
			return fmt.Errorf("got %d, and wanted %d", got, n)
		}
	}
	return nil
}

// countAll counts on all, and calls between while the counts run.
func countAll(t *testing.T, all []*asterisque.StreamCall[[]byte, []byte, struct{}], between func()) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*enough)
	defer cancel()
	errs := make([]error, len(all))
	var counting, begun sync.WaitGroup
	for i, call := range all {
		begun.Add(1)
		counting.Go(func() {
			err := count(ctx, call, 1, 5)
			begun.Done()
			if err == nil {
				err = count(ctx, call, 5, 20)
			}
			errs[i] = err
		})
	}
	begun.Wait()
	between()
	counting.Wait()
	return errs
}

func TestKilled_NoLoss(t *testing.T) {
	t.Parallel()
	killed := startAlone(t, "tcp://127.0.0.1:0")
	x, other := started(t, exchange.Config{Policy: everybody})
	all := passingSessions(t, []string{killed.url, other}, resume)
	require.EqualValues(t, passing, killed.costs(t, "").Sessions)
	for i, err := range countAll(t, all, killed.kill) {
		require.NoError(t, err, "session %d", i)
	}
	require.Equal(t, passing, x.Stats().Sessions)
}

func TestKilled_BothEndsNotice(t *testing.T) {
	t.Parallel()
	brief := agent.Config{Options: []asterisque.Option{asterisque.WithResume(asterisque.Resume{For: -1})}}
	killed := startAlone(t, "tcp://127.0.0.1:0")
	_, other := started(t, exchange.Config{Policy: everybody})
	ended := make(chan error, 1)
	far, near := brief, brief
	far.Exchange, far.Name, far.ID, far.Service = []string{killed.url, other}, "orders", "b", service("b", ended)
	near.Exchange, near.Name, near.ID = far.Exchange, "shop", "a"
	join(t, far)
	p := callerOf(t, join(t, near), "orders")
	call := running(t, p)
	killed.kill()
	_, err := call.Result(soon(t))
	require.Error(t, err)
	require.False(t, asterisque.Repeatable(err), "it may have run")
	require.ErrorIs(t, <-ended, context.Canceled, "the handler learns of it")
	require.Eventually(t, func() bool {
		_, err := whoami.Call(soon(t), p, struct{}{})
		return err == nil
	}, enough, time.Millisecond, "through the other one")
}
