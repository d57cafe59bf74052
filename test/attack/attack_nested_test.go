package attack

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAttackNested_CallBacks nests calls as deep as the other side permits.
func TestAttackNested_CallBacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()), asterisque.WithWorkers(asterisque.Workers{Session: 16}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		open, depth := &message.Open{Pipe: 0, Function: 70}, 0
		for {
			p.Send(open)
			frame := p.Frame()
			for kind, _ := message.TypeOf(frame); kind == message.ControlType; kind, _ = message.TypeOf(frame) {
				frame = p.Frame()
			}
			back, err := message.ParseOpen(frame)
			if err != nil {
				c, err := message.ParseClose(frame)
				require.NoError(t, err)
				require.Equal(t, codec.Overloaded, c.Abort.Code)
				break
			}
			depth += 2
			open = testkit.Within(&message.Open{Pipe: open.Pipe + 2, Function: 70}, back.Pipe)
		}
		attack.Bounded(t, "calls within each other", depth, 64)
		synctest.Wait()
		attack.Bounded(t, "handlers of one chain of calls within each other", node.Stats().Total.Running, 33)
	})
}

// TestAttackNested_InOneCall requires a bound of the nested calls that run for one peer, with many
// calls on several sessions.
func TestAttackNested_InOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := testkit.Long(16, 256)
		most := 32 * workers
		node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()), testkit.Named(), asterisque.WithWorkers(asterisque.Workers{Session: workers, Node: workers}))
		defer node.Close()
		flood := func(name string) (p *testkit.RawPeer, run int) {
			before := node.Stats().Lent
			p, _ = testkit.RawTo(t, node, testkit.HelloOf(name))
			p.Send(&message.Open{Pipe: 0, Function: 70})
			back := p.Open()
			go p.Swallow()
			for i := range uint64(most) {
				p.Send(testkit.Within(&message.Open{Pipe: 2*i + 2, Function: 72}, back.Pipe))
			}
			synctest.Wait()
			return p, node.Stats().Lent - before
		}
		first, run := flood("mallory")
		require.Equal(t, most, run, "which is what it was promised")
		attack.Bounded(t, fmt.Sprintf("calls within calls that run for one session, %d workers", workers), node.Stats().Lent, most)
		for range 5 {
			_, run := flood("mallory")
			require.Zero(t, run, "one peer has half of the reserve, with all its sessions")
		}
		attack.Bounded(t, "calls within calls that run for one peer with six sessions", node.Stats().Lent, most)
		_, run = flood("alice")
		require.Equal(t, most/2, run, "another one has half of what is left")
		flood("bob")
		attack.Bounded(t, "calls within calls that run for three peers", node.Stats().Lent, 2*most)
		require.Greater(t, node.Stats().Busy, node.Stats().Lent, "they count as busy")
		first.W.Close()
		synctest.Wait()
		attack.Bounded(t, "calls within calls of a session that hung up", node.Stats().Lent, most)
		for _, s := range node.Sessions() {
			s.Close()
		}
		synctest.Wait()
		require.Zero(t, node.Stats().Lent)
		require.Zero(t, node.Stats().Total.Classes.Nested.Held)
	})
}

// Nested calls without an enclosing call have no room of their own.
func TestAttackNested_InNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()), asterisque.WithWorkers(asterisque.Workers{Session: 4}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		for i := range uint64(5000) {
			p.Send(testkit.Within(&message.Open{Pipe: 2 * i, Function: 72}, 1))
			c := p.Answer()
			require.Equal(t, codec.Canceled, c.Abort.Code)
			require.Equal(t, codec.Refused, c.Abort.Ran)
		}
		attack.Bounded(t, "calls within no call that wait or run", node.Stats().Total.Waiting+node.Stats().Total.Running, 0)
	})
}

// Workers that were lent to sleeping calls end.
func TestAttackWorkers_Sleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()))
		defer node.Close()
		for range 3 {
			p, _ := testkit.RawTo(t, node, testkit.Hello())
			for i := range uint64(1024) {
				p.Send(&message.Open{Pipe: 2 * i, Function: 72})
			}
			synctest.Wait()
		}
		require.Equal(t, 3*1024, node.Stats().Busy)
		for _, s := range node.Sessions() {
			s.Close()
		}
		synctest.Wait()
		attack.Bounded(t, "workers without work that are kept", node.Stats().IdleWorkers, 1024)
	})
}

// TestAttackNested_LentWorker lends a worker to the maximum number of calls. Each call has a key of
// its own, and a nested call that waits for the key is then canceled.
func TestAttackNested_LentWorker(t *testing.T) {
	for name, meta := range map[string]func(int) message.Meta{
		"plain":   func(int) message.Meta { return message.Meta{} },
		"durable": func(i int) message.Meta { return message.Meta{Key: fmt.Appendf(nil, "%-16d", i)} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 256 // with one worker
				svc := testkit.CallsBack()
				svc.Handle(2, "sleeps", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}, asterisque.WithKey(func(b []byte) string { return string(b) }))
				node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
				defer node.Close()
				p, _ := testkit.RawTo(t, node, testkit.Hello())
				p.Send(&message.Open{Pipe: 0, Function: 70})
				back := p.Open()
				var refused atomic.Int64 // of the calls that the nested ones wait for
				go func() {              // ends with the wire
					for f, err := p.W.ReadFrame(message.MaxFrame); err == nil; f, err = p.W.ReadFrame(message.MaxFrame) {
						if c, err := message.ParseClose(f); err == nil && c.Abort != nil && c.Abort.Code == codec.Overloaded && c.Pipe%4 == 0 {
							refused.Add(1)
						}
					}
				}()
				for round := range 2 { // a call that is over keeps no place
					begin := round * 3 * most
					for i := begin; i < begin+3*most; i++ {
						at, params := 4*uint64(i)+4, fmt.Append(nil, i)
						p.Send(&message.Open{Pipe: at, Function: 2, Params: params, Meta: meta(i)},
							testkit.Within(&message.Open{Pipe: at + 2, Function: 2, Params: params}, back.Pipe),
							&message.Close{Pipe: at + 2, Abort: codec.ErrCanceled})
					}
					synctest.Wait()
					attack.Bounded(t, "calls to which a worker is lent", node.Stats().Lent, most)
					require.Greater(t, node.Stats().Lent, most/2)
					st := node.Stats()
					require.Equal(t, 3*most, st.Lent+st.Total.Waiting+int(refused.Swap(0)), "none is forgotten")
					for i := begin; i < begin+3*most; i++ {
						p.Send(&message.Close{Pipe: 4*uint64(i) + 4, Abort: codec.ErrCanceled})
					}
					synctest.Wait()
					require.Zero(t, node.Stats().Lent)
					require.Zero(t, node.Stats().Total.Waiting)
				}
			})
		})
	}
}

// TestParts_NestedBesideGivenUp uses a peer that cancels nested calls with handlers that continue,
// and makes the next ones in parts, as it may: they do not exceed the granted room.
func TestParts_NestedBesideGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, leave := asterisque.NewService(), make(chan struct{})
		svc.Handle(2, "stubborn", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-leave; return nil, nil })
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer node.Close()
		defer close(leave)
		p, reply := testkit.RawTo(t, node, testkit.Hello())
		s := node.Sessions()[0]
		go s.Call(testkit.Background, 1, nil) // ends with the session
		call := p.Open().Pipe
		const size = 250_000
		cost := size + max(512, int(reply.Overhead))
		room, others := int(reply.NestedRoom)/cost, int(reply.Opens)/cost // these wait
		for i := range others {
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 2, Params: make([]byte, size)})
		}
		codes := make(map[codec.Code]int)
		frame := func() []byte {
			f := p.Frame()
			if m, err := message.ParseClose(f); err == nil {
				codes[m.Abort.Code]++
			}
			return f
		}
		for i := range room + 3 {
			id := uint64(2 * (others + i))
			p.Send(testkit.Within(&message.Open{Pipe: id, Function: 2, Params: make([]byte, size)}, call))
			p.Send(message.Ping{N: id})
			for over := false; !over; {
				c, err := message.ParseControl(frame())
				over = err == nil && c == message.Control(message.Pong{N: id})
			}
			synctest.Wait() // the handler has begun, if it does
			p.Send(&message.Close{Pipe: id, Abort: codec.ErrCanceled})
		}
		for codes[codec.Overloaded] == 0 { // the nested room is full; a Pong overtakes what says so
			frame()
		}
		require.NotContains(t, codes, codec.WindowViolation)
	})
}
