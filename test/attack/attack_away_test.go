package attack

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
)

// goesAway begins a session of the peer name, and cuts its wire.
func goesAway(t *testing.T, node *asterisque.Node, name string) message.Sync {
	h := testkit.HelloOf(name)
	h.Features = message.FeatureResume
	p, first := testkit.RawTo(t, node, h)
	first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
	p.W.Close()
	synctest.Wait()
	return first
}

// comesBack reports whether the peer name can resume its session.
func comesBack(t *testing.T, node *asterisque.Node, name string, first message.Sync) bool {
	h := testkit.Resuming(first, 0)
	h.Node = []byte(name)
	_, second := testkit.RawTo(t, node, h)
	return bytes.Equal(first.Session, second.Session)
}

// A peer cuts its handshakes at once.
func TestAttackResume_CutAtOnce(t *testing.T) {
	const most = 50
	cuts := testkit.Long(400, 20_000)
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(testkit.Named(), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAdmission(asterisque.Admission{PerAddress: most}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		honest := goesAway(t, node, "honest")
		before := runtime.NumGoroutine()
		var last message.Sync
		for range cuts {
			last = goesAway(t, node, "hostile")
		}
		attack.Bounded(t, fmt.Sprintf("sessions away of one peer, after %d handshakes", cuts), len(node.Sessions())-1, most)
		attack.Bounded(t, "their goroutines, and those of the test", runtime.NumGoroutine()-before, 5)
		require.True(t, comesBack(t, node, "hostile", last), "the latest one is there")
		require.True(t, comesBack(t, node, "honest", honest), "and that of another peer, the oldest")
	})
}

// Many peers cut their handshakes at once.
func TestAttackResume_ManyPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 20 suspended sessions
		node := asterisque.NewNode(testkit.Named(), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAdmission(asterisque.Admission{Sessions: 80}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		honest := goesAway(t, node, "honest")
		for n := range 60 {
			goesAway(t, node, fmt.Sprintf("hostile %d", n%4))
		}
		attack.Bounded(t, "sessions away of all peers, with Admission.Sessions of 80", len(node.Sessions()), 20)
		require.True(t, comesBack(t, node, "honest", honest), "the peer with the fewest keeps it")
	})
}

// Suspended sessions hold a bounded number of bytes.
func TestAttackAway_Bytes(t *testing.T) {
	const budget, each = 64 << 20, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(60, "large", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { return make([]byte, each-1000), nil })
		node := asterisque.NewNode(testkit.Named(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Budget: budget}), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		honest := goesAway(t, node, "honest")
		for range 40 {
			h := testkit.HelloOf("hostile")
			h.Features, h.MaxMessage = message.FeatureResume, 2<<20
			p, _ := testkit.RawTo(t, node, h)
			p.Send(&message.Open{Pipe: 0, Function: 60})
			p.Answer() // which is never acknowledged
			p.W.Close()
			synctest.Wait()
		}
		attack.Bounded(t, "bytes of sessions away of one peer, with Limits.Budget of 64 MiB", node.Stats().Held-16<<10, budget/8)
		require.True(t, comesBack(t, node, "honest", honest))
	})
}

// Frames are sent again for a session at a limited rate, however often its peer comes back.
func TestAttackResume_Repeated(t *testing.T) {
	testkit.SkipRace(t)
	const size, seconds = 1 << 20, 10
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(60, "large", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { return make([]byte, size-1000), nil })
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		h := testkit.Resumable()
		h.MaxMessage = 2 << 20
		p, first := testkit.RawTo(t, node, h)
		first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
		p.Send(&message.Open{Pipe: 0, Function: 60})
		p.Answer()
		begin, sent := time.Now(), 0
		for time.Since(begin) < seconds*time.Second {
			p.W.Close()
			synctest.Wait()
			h := testkit.Resuming(first, 0)
			h.MaxMessage = 2 << 20
			var next message.Sync
			p, next = testkit.RawTo(t, node, h)
			require.Equal(t, first.Session, next.Session, "an honest peer waits, and is not refused")
			first.Secret = bytes.Clone(next.Secret)
			p.Answer()
			sent += size
		}
		attack.Bounded(t, "bytes sent again for one session in 10 s, its peer coming back at once", sent, (seconds+4)*16<<20+2*size)
	})
}

// Pings beside calls are not kept for a peer that acknowledges nothing.
func TestAttackAway_Pings(t *testing.T) {
	const calls, soft = 2_000, 32 << 20
	node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
	defer node.Close()
	p, _ := testkit.RawTo(t, node, testkit.Resumable())
	defer p.W.Close() // before the node, which would wait for the peer
	before := weightest.Heap()
	for n := range uint64(calls) {
		p.W.WriteFrames([][]byte{message.Ping{N: n}.AppendTo(nil), (&message.Open{Pipe: 2 * n, Function: testkit.Echo.Number(), Params: []byte{0x61, 'x'}}).AppendTo(nil)})
		p.Answer()
	}
	held := node.Stats().Held
	attack.Bounded(t, "bytes kept for a peer that acknowledges nothing, beside what is counted", weightest.HeldSince(before, 1<<20+held)-held, 1<<20)
}
