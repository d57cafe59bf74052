package attack

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAttackDurable_OthersStay makes more durable calls outlive their session than the node has
// room for, and requires that durable calls of other peers continue.
func TestAttackDurable_OthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, running := testkit.Dreamers()
		node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named(), asterisque.WithWorkers(asterisque.Workers{Node: 16}))
		defer node.Close()
		begins := func(name string, calls uint64) {
			p, _ := testkit.RawTo(t, node, testkit.HelloOf(name))
			for i := range calls {
				p.Send(testkit.Keyed(2*i, fmt.Sprint(i)))
			}
			synctest.Wait()
			p.W.Close()
			synctest.Wait()
		}
		begins("alice", 1)
		begins("bob", 2)
		for range 3 {
			begins("mallory", 16)
		}
		attack.Bounded(t, "durable calls of all peers that run on, of Workers.Node of 16", int(running.Load()), 8)
		for name, calls := range map[string]uint64{"alice": 1, "bob": 2} {
			p, _ := testkit.RawTo(t, node, testkit.HelloOf(name))
			for i := range calls {
				p.Send(testkit.Keyed(2*i, fmt.Sprint(i)))
			}
			synctest.Wait()
			p.Send(message.Ping{N: 7})
			require.True(t, testkit.IsPong(p.Frame()), "those of %s have no answer yet", name)
		}
	})
}

// TestAttackDurable_OneSession uses a function without a bound: the outliving durable calls are
// those of one session.
func TestAttackDurable_OneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		svc := asterisque.NewService()
		svc.Handle(60, "sleep", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
			running.Add(1)
			defer running.Add(-1)
			return testkit.WaitForContext(ctx, p, params)
		}, asterisque.WithConcurrency(64))
		node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named(), asterisque.WithWorkers(asterisque.Workers{Session: 8}))
		defer node.Close()
		for s := range 8 {
			p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
			for i := range uint64(8) {
				p.Send(&message.Open{Pipe: 2 * i, Function: 60, Meta: message.Meta{Key: fmt.Appendf(nil, "%d %d", s, i)}})
			}
			synctest.Wait()
			p.W.Close()
			synctest.Wait()
		}
		attack.Bounded(t, "durable calls of one peer that run on, 8 workers, of a function with WithConcurrency(64)", int(running.Load()), 8)
	})
}

// TestAttackDurable_Budget requires that durable calls that outlive their session count for the
// budget, but without their parameters.
func TestAttackDurable_Budget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget, size = 4 << 20, 1 << 20
		svc, _ := testkit.Dreamers()
		svc.Handle(60, "sleep", testkit.WaitForContext)
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Budget: budget}))
		begins := func(s int) bool {
			p := testkit.PipeTo(t, node)
			p.Send(testkit.Hello())
			if _, ok := p.Control().(message.Sync); !ok {
				return false
			}
			p.Send(&message.Open{Pipe: 0, Function: 60, Params: make([]byte, size), Meta: message.Meta{Key: fmt.Appendf(nil, "%16d", s)}})
			synctest.Wait()
			p.W.Close()
			synctest.Wait()
			return true
		}
		sessions := 0
		for sessions < 20 && begins(sessions) {
			sessions++
		}
		attack.Bounded(t, "bytes of parameters of durable calls that run on, of Limits.Budget of 4 MiB", sessions*size, budget+size)
		require.GreaterOrEqual(t, node.Stats().Held, sessions*size)
		node.Close()
		synctest.Wait()
		require.Less(t, node.Stats().Held, size, "what is remembered of them")
	})
}
