package resume

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// Half a message before a cut is not kept.
func TestAttackResume_HalfMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		defer node.Close()
		conns, _ := testkit.Attackers(t, 1, node, testkit.Resumable())
		_, err := conns[0].Write(append(binary.BigEndian.AppendUint32(nil, 64<<10), make([]byte, 60<<10)...))
		require.NoError(t, err)
		fakeclock.Sleep(5 * time.Second)
		require.Greater(t, node.Stats().Held, 60<<10)
		conns[0].Close()
		fakeclock.Sleep(5 * time.Second)
		require.True(t, node.Sessions()[0].Away())
		attack.Bounded(t, "bytes that count for a session that is away, besides itself", node.Stats().Held-16<<10, 0)
	})
}

// TestAttackResume_Pings sends much data before a resume and only Pings on the next wire, and
// requires that few Pings are answered at once.
func TestAttackResume_Pings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		p, first := testkit.RawTo(t, node, testkit.Resumable())
		first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
		for i := range uint64(20) {
			p.Send(&message.Open{Pipe: 2 * i, Function: 9, Params: make([]byte, 200_000)})
			p.Answer()
		}
		fakeclock.Sleep(time.Second)
		p.Send(message.Ping{})
		synctest.Wait()
		p.W.Close()
		synctest.Wait()
		q, second := testkit.RawTo(t, node, testkit.Resuming(first, 20))
		require.Equal(t, first.Session, second.Session)
		pongs := 0
		go func() { // ends with the wire
			for {
				f, err := q.W.ReadFrame(1 << 20)
				if err != nil {
					return
				}
				if testkit.IsPong(f) {
					pongs++
				}
			}
		}()
		for n := range uint64(1000) {
			q.Send(message.Ping{N: n})
			synctest.Wait()
		}
		attack.Bounded(t, "Pongs at once for 1000 Pings after a resume", pongs, 100)
	})
}

// TestAttackResume_Unacked makes the node grant credit for many Blocks that are abandoned, and
// acknowledges none of the Credits. The node holds a bounded number of them for a resume and ends
// the session at last.
func TestAttackResume_Unacked(t *testing.T) {
	const soft, rounds = 4 << 20, 30_000
	svc := asterisque.NewService()
	svc.Handle(60, "waits", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) { return nil, recvErr(ctx, p) })
	node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}),
		asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: soft}}, Window: 64 << 10}))
	defer node.Close()
	p, _ := testkit.RawTo(t, node, testkit.Resumable())
	p.Send(&message.Open{Pipe: 0, Function: 60, Meta: message.Meta{Stream: true}})
	most, before, bye := 0, weightest.Heap(), message.SessionClose{}
	block := (&message.Block{Payload: make([]byte, 400_000)}).AppendTo(nil)
	begin := &message.Part{Bytes: block[:message.LeastPart], Whole: uint64(len(block))}
	for n := uint64(0); n < rounds && bye.Code == 0; n++ {
		if n%1000 == 0 {
			most = max(most, weightest.Heap()-before)
		}
		// An error means that the wire has ended.
		p.W.WriteFrames([][]byte{begin.AppendTo(nil)})
		bye = p.UntilCredit((n + 1) * (400_000 + 512))
		p.W.WriteFrames([][]byte{(&message.Part{GivenUp: true}).AppendTo(nil)})
	}
	require.Equal(t, codec.Protocol, bye.Code, "the session ends")
	attack.Bounded(t, "bytes kept of Controls that are not acknowledged, with a soft limit of 4 MiB", most, 2<<20)
}

func recvErr(ctx context.Context, p *pipe.Pipe) error {
	_, err := p.Recv(ctx)
	return err
}
