package asterisque_test

import (
	"context"
	"fmt"
	"runtime"
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
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// TestAttackDurable_Block sends a Block that violates the protocol: a waiting call must not be
// answered, and then begin.
func TestAttackDurable_Block(t *testing.T) {
	for _, b := range []*message.Block{{Pipe: 2, Payload: []byte("x")}, {Pipe: 2, End: true}} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { <-gate; return n, nil })
			node := asterisque.NewNode(asterisque.WithService(l.Svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
			defer node.Close()
			p, _ := testkit.RawTo(t, node, testkit.Hello())
			p.Send(testkit.Keyed(0, "busy"), testkit.Keyed(2, "waits"))
			synctest.Wait()
			p.Send(b)
			synctest.Wait()
			close(gate)
			synctest.Wait()
			require.Equal(t, []int{5}, l.List(), "the one that ran already")
			p.WantSessionClose(codec.Protocol, "unary")
		})
	}
}

// TestAttackNested_UnsentRejections makes nested calls be rejected, reads no rejection, and then
// exceeds the hard limit: the waiting rejections never leave, and keep no places.
func TestAttackNested_UnsentRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := testkit.CallsBack()
		svc.Handle(61, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 32<<10), nil })
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 16}),
			asterisque.WithLimits(asterisque.Limits{Outbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 10}, Hard: limits.Amount{Bytes: 128 << 10}}}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(&message.Open{Pipe: 0, Function: 70})
		back := p.Open()
		for i := range uint64(8) {
			p.Send(&message.Open{Pipe: 2 + 2*i, Function: 61})
		}
		synctest.Wait()
		for i := range uint64(100) {
			p.Send(testkit.Within(&message.Open{Pipe: 1000 + 2*i, Function: 9}, back.Pipe))
		}
		synctest.Wait()
		require.Equal(t, 100, asterisque.PlacesWithin(node))
		s := node.Sessions()[0]
		for i := uint64(2000); s.Err() == nil; i += 2 { // more than the budget allows
			p.Send(testkit.Within(&message.Open{Pipe: i, Function: 72, Params: make([]byte, 100)}, back.Pipe))
		}
		require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
		p.W.Close()
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		attack.Bounded(t, "places of calls within calls that a session keeps which has ended", asterisque.PlacesWithin(node), 0)
		require.Zero(t, node.Stats().Held)
	})
}

// TestAttackHardLimit_Repetitions ends a session while its own repetitions replace the calls that
// end with it.
func TestAttackHardLimit_Repetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, _ := testkit.Dreamers()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(testkit.Keyed(0, "busy"), testkit.Keyed(2, "waits"), testkit.Keyed(4, "waits"), testkit.Keyed(6, "other"), testkit.Keyed(8, "other"))
		synctest.Wait()
		s, few := node.Sessions()[0], limits.Limits{Soft: limits.Amount{Messages: 1}, Hard: limits.Amount{Messages: 2}}
		require.NoError(t, s.SetLimits(few, few), "and it returns")
		require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
		p.WantSessionClose(codec.HardLimit, "")
		synctest.Wait()
		require.Empty(t, node.Sessions())
	})
}

// TestAttackInline_SessionEnd sends durable inline calls, nested in a call, when the session ends.
func TestAttackInline_SessionEnd(t *testing.T) {
	svc := testkit.CallsBack()
	svc.Handle(62, "inline", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil }, asterisque.WithInline())
	for round := range testkit.Long(200, 20_000) {
		synctest.Test(t, func(t *testing.T) {
			node := asterisque.NewNode(asterisque.WithService(svc))
			defer node.Close()
			p, _ := testkit.RawTo(t, node, testkit.Hello())
			p.Send(&message.Open{Pipe: 0, Function: 70})
			back := p.Open()
			go p.Swallow() // ends with the wire
			go func() {    // ends with the wire
				for i := uint64(2); i < 600; i += 2 {
					o := testkit.Within(&message.Open{Pipe: i, Function: 62}, back.Pipe)
					o.Meta.Key = fmt.Appendf(nil, "%16d", i)
					if p.W.WriteFrames([][]byte{o.AppendTo(nil)}) != nil {
						return
					}
				}
			}()
			for range round % 50 {
				runtime.Gosched()
			}
			node.Sessions()[0].Close()
			synctest.Wait()
			require.Zero(t, asterisque.PlacesWithin(node))
		})
	}
}
