package attack

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// rawOn connects a rawPeer to node over TCP.
func rawOn(t *testing.T, node *asterisque.Node) (*testkit.RawPeer, *asterisque.Session) {
	t.Helper()
	here, there := testkit.TCPPair(t)
	p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := node.Accept(testkit.Background, wire.FromConn(there))
		if err != nil {
			t.Error(err)
		}
		sessions <- s
	}()
	p.Send(testkit.Hello())
	require.IsType(t, message.Sync{}, p.Control())
	return p, <-sessions
}

// TestFlood_GivenUpCalls uses a peer that opens calls and cancels them at once, while handlers that
// ignore their context occupy all workers.
func TestFlood_GivenUpCalls(t *testing.T) {
	testkit.SkipRace(t)
	const workers = 8
	pairs, most := 10_000, 1<<20
	if *testkit.Soak {
		pairs, most = 200_000, 4<<20
	}
	for name, c := range map[string]struct {
		opts    []asterisque.HandlerOption
		pairs   int
		running int
		nested  bool
	}{
		"at workers that are busy":       {nil, pairs, workers, false},
		"at one key":                     {[]asterisque.HandlerOption{asterisque.WithKey(func([]byte) int { return 1 })}, pairs, 1, false},
		"at a gate":                      {[]asterisque.HandlerOption{asterisque.WithConcurrency(2)}, pairs, 2, false},
		"within a call back":             {nil, pairs, workers + 256, true},
		"within a call back, at one key": {[]asterisque.HandlerOption{asterisque.WithKey(func([]byte) int { return 1 })}, pairs, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			svc := testkit.EchoService()
			svc.Handle(50, "stubborn", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { <-end; return nil, nil }, c.opts...)
			svc.Handle(51, "calls back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
				return asterisque.SessionOf(ctx).Call(ctx, 1, nil)
			})
			node, client := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: workers})), asterisque.NewNode()
			t.Cleanup(func() { node.Close(); client.Close() })
			good, _ := testkit.ConnectNodes(t, client, node)
			peer, bad := rawOn(t, node)
			open := message.Open{Function: 50, Params: []byte("some parameters")}
			if c.nested {
				peer.Send(&message.Open{Pipe: 0, Function: 51})
				for {
					if m, err := message.ParseOpen(peer.Frame()); err == nil {
						open.Meta = message.Meta{Nested: true, Within: m.Pipe}
						break
					}
				}
			}
			peer.Flood(workers*4, 2, open) // until as many run as can
			before := weightest.Heap()
			peer.Flood(c.pairs, 1000, open)
			grown := weightest.HeldSince(before, most)
			st := bad.Stats()
			t.Logf("%d pairs: %d KiB more, at most %d waited", c.pairs, grown>>10, st.MostWaiting)
			require.Less(t, grown, most)
			require.LessOrEqual(t, st.Running, c.running)
			require.LessOrEqual(t, st.Pipes, 2, "the calls are over as far as the peer goes; the call back and the one it is made in apart")
			require.Zero(t, st.Waiting)
			require.Zero(t, st.Inbound)
			require.LessOrEqual(t, st.MostInbound.Bytes, 300*(512+len(open.Params)))
			require.NoError(t, bad.Err())
			for range 100 {
				_, err := testkit.Echo.Call(testkit.Background, good, "the other session is unharmed")
				require.NoError(t, err)
			}
			close(end)
			if c.nested {
				peer.W.Close() // before the session, which would wait for the peer
				bad.Close()
			}
			testkit.WantIdle(t, bad, good)
			again, _ := testkit.ConnectNodes(t, client, node)
			for range 3 {
				_, err := again.Call(testkit.Background, 50, nil)
				require.NoError(t, err, "keys and gates accept other calls")
			}
		})
	}
}

// TestGiveUp_AnyOrder opens many calls first, and cancels them later, from both ends of the queue.
func TestGiveUp_AnyOrder(t *testing.T) {
	for name, opts := range map[string][]asterisque.HandlerOption{
		"at workers": nil,
		"at one key": {asterisque.WithKey(func([]byte) int { return 1 })},
		"at a gate":  {asterisque.WithConcurrency(1)},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 4000
			svc := asterisque.NewService()
			svc.Handle(50, "waits", testkit.WaitForContext, opts...)
			peer, s := testkit.DialRaw(t, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
			var closes []interface{ AppendTo([]byte) []byte }
			for i := range uint64(n) {
				peer.Send(&message.Open{Pipe: 2 * i, Function: 50, Priority: int8(i % 3)})
				// 1001 and n are coprime, so the loop closes every pipe, in a mixed order.
				closes = append(closes, &message.Close{Pipe: 2 * (i * 1001 % n), Abort: codec.ErrCanceled})
			}
			peer.Send(closes...)
			peer.Send(message.Ping{N: 1})
			for {
				if c, err := message.ParseControl(peer.Frame()); err == nil && c == (message.Pong{N: 1}) {
					break
				}
			}
			testkit.WantIdle(t, s)
		})
	}
}

// TestAttackCalls_SlowedDown uses a peer that cancels each call that it opens, as fast as it can:
// it is slowed down.
func TestAttackCalls_SlowedDown(t *testing.T) {
	for name, c := range map[string]struct {
		pairs       int
		least, most time.Duration
	}{
		"as many at once as are let through": {10_000, 0, 0},
		"twice more":                         {30_000, 1900 * time.Millisecond, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := testkit.Unbuffered()
				svc := asterisque.NewService()
				// No call is answered before the peer gives it up.
				svc.Handle(50, "waits", testkit.WaitForContext)
				node := testkit.NewNode(t, asterisque.WithService(svc))
				go node.Accept(testkit.Background, b) // ends with the handshake
				p := &testkit.RawPeer{T: t, W: a}
				p.Send(testkit.Hello())
				require.IsType(t, message.Sync{}, p.Control())
				begin := time.Now()
				p.Flood(c.pairs, 2, message.Open{Function: 50})
				took := time.Since(begin)
				require.GreaterOrEqual(t, took, c.least)
				require.LessOrEqual(t, took, c.most)
				a.Close()
			})
		})
	}
}
