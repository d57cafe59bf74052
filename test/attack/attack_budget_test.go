package attack

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAttackBudget_OneShare fills the queue for calls in one session after the other: many sessions
// of one peer hold one share of the budget.
func TestAttackBudget_OneShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget, size, room = 16 << 20, 64 << 10, 4 << 20
		svc := testkit.CallsBack() // and has an echo
		node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named(), asterisque.WithLimits(asterisque.Limits{Budget: budget}), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer node.Close()
		alice, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
		var mallory []*testkit.RawPeer
		ids := make(map[*testkit.RawPeer]uint64)
		for range 8 { // sessions, as long as the budget is not used up
			p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
			mallory = append(mallory, p)
		}
		refused := 0
		for _, p := range mallory {
			for range room / size {
				p.Send(&message.Open{Pipe: ids[p], Function: 72, Params: make([]byte, size)})
				ids[p] += 2
			}
			p.Send(message.Ping{N: 1})
			for frame := p.Frame(); !testkit.IsPong(frame); frame = p.Frame() {
				c, err := message.ParseClose(frame)
				if err != nil {
					continue
				}
				refused++
				require.Equal(t, codec.Overloaded, c.Abort.Code)
				require.Equal(t, codec.Refused, c.Abort.Ran)
				_, ok := asterisque.RetryAfter(c.Abort)
				require.True(t, ok)
			}
		}
		require.Positive(t, refused)
		attack.Bounded(t, "bytes held for eight sessions of one peer, of Limits.Budget of 16 MiB", node.Stats().Held, budget+9*48<<10+size)
		require.Greater(t, node.Stats().Held, budget)

		alice.Send(testkit.EchoOpen(0))
		require.Nil(t, alice.Answer().Abort, "a peer below its share is served")
		ids[alice] = 2
		for range 16 {
			alice.Send(&message.Open{Pipe: ids[alice], Function: 72, Params: make([]byte, size)})
			ids[alice] += 2
		}
		synctest.Wait()
		require.Equal(t, 16, waitingOf(node, "alice"))

		require.Equal(t, codec.Overloaded, refusedHandshake(t, node, testkit.HelloOf("mallory")).Code, "no session of the largest holder begins")
		bob, _ := testkit.RawTo(t, node, testkit.HelloOf("bob"))
		bob.Send(testkit.EchoOpen(0))
		require.Nil(t, bob.Answer().Abort, "other peers are admitted")
		for _, p := range mallory {
			p.W.Close()
		}
		synctest.Wait()
		require.Less(t, node.Stats().Held, budget/2)
		testkit.RawTo(t, node, testkit.HelloOf("mallory"))
	})
}

// waitingOf returns the number of calls of a peer that wait or run.
func waitingOf(n *asterisque.Node, name string) (calls int) {
	for _, s := range n.Sessions() {
		if s.Peer().Subject == name {
			calls += s.Stats().Waiting + s.Stats().Running
		}
	}
	return calls
}

// TestBudget_SmallWindows compares the room of handlers: above half of the budget, windows are
// small.
func TestBudget_SmallWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()), testkit.Named(), asterisque.WithLimits(asterisque.Limits{Budget: 4 << 20}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
		window := func(pipe uint64) uint64 {
			p.Send(&message.Open{Pipe: pipe, Function: 72, Meta: message.Meta{Stream: true}})
			synctest.Wait()
			p.Send(message.Ping{N: pipe})
			if c, ok := p.Control().(message.Credit); ok {
				p.Control()
				return c.Limit
			}
			return 4096 // which every stream has from its beginning
		}
		require.EqualValues(t, 64<<10, window(0))
		q, _ := testkit.RawTo(t, node, testkit.HelloOf("bob"))
		q.Send(&message.Open{Pipe: 0, Function: 72, Params: make([]byte, 3<<20)})
		synctest.Wait()
		require.EqualValues(t, 4096, window(2))
		q.Send(&message.Close{Pipe: 0, Abort: codec.ErrCanceled})
		synctest.Wait()
		require.EqualValues(t, 64<<10, window(4))
	})
}

// TestAttackBudget_OneTurn requires that calls of one peer with ten sessions and calls of one with
// a single session alternate at the only worker.
func TestAttackBudget_OneTurn(t *testing.T) {
	for _, c := range []struct {
		name     string
		opts     []asterisque.Option
		function []asterisque.HandlerOption
	}{
		{"for a worker of the node", []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Node: 1})}, nil},
		{"for a place at a function", nil, []asterisque.HandlerOption{asterisque.WithConcurrency(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const sessions, calls = 10, 20
				var mu sync.Mutex
				var order []string // guarded by mu
				svc := asterisque.NewService()
				svc.Handle(73, "who", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
					fakeclock.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					order = append(order, asterisque.SessionOf(ctx).Peer().Subject)
					return nil, nil
				}, c.function...)
				node := asterisque.NewNode(append(c.opts, asterisque.WithService(svc), testkit.Named())...)
				defer node.Close()
				for range sessions {
					p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
					go p.Swallow()
					for i := range uint64(calls) {
						p.Send(&message.Open{Pipe: 2 * i, Function: 73})
					}
				}
				alice, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
				go alice.Swallow()
				for i := range uint64(calls) {
					alice.Send(&message.Open{Pipe: 2 * i, Function: 73})
				}
				fakeclock.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				hers, before := 0, 0
				for i, who := range order {
					if who == "alice" {
						hers, before = hers+1, i+1
					}
				}
				require.Equal(t, calls, hers)
				attack.Bounded(t, "calls of ten sessions of a peer that ran before 20 of another, "+c.name, before-hers, calls+sessions+2)
			})
		})
	}
}

// refusedHandshake returns the message to a peer that is not admitted.
func refusedHandshake(t *testing.T, n *asterisque.Node, hello message.Sync) message.SessionClose {
	t.Helper()
	p := testkit.PipeTo(t, n)
	p.Send(hello)
	c, ok := p.Control().(message.SessionClose)
	require.True(t, ok)
	return c
}

// TestAttackBudget_HalfMessages uses peers that send the beginning of a message of 4 MiB: it counts
// for the budget.
func TestAttackBudget_HalfMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 8 << 20
		node := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{Budget: budget}))
		defer node.Close()
		conns, _ := testkit.Attackers(t, 5, node, testkit.Hello())
		for _, c := range conns {
			_, err := c.Write(testkit.Frames(&message.Open{Function: 10, Params: make([]byte, 4<<20-100)})[:2<<20])
			require.NoError(t, err)
		}
		fakeclock.Sleep(5 * time.Second)
		require.Greater(t, node.Stats().Held, 5*(2<<20))
		require.Equal(t, codec.Overloaded, refusedHandshake(t, node, testkit.Hello()).Code)
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		attack.Bounded(t, "bytes held for peers that stopped in the middle of a message, after a minute", node.Stats().Held, 0)
	})
}
