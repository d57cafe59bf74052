package sessions

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// pingAlong sends a Ping at each interval until the connection ends.
func pingAlong(c net.Conn, each time.Duration) {
	for {
		fakeclock.Sleep(each)
		if _, err := c.Write(testkit.Frames(message.Ping{})); err != nil {
			return
		}
	}
}

// largeResults is a service with a function 1 that returns 256 KiB.
func largeResults() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(1, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 256<<10), nil })
	return svc
}

// TestAttackPings_None has peers that announce no Pings, request large results, send Pings, and
// read nothing: their sessions end.
func TestAttackPings_None(t *testing.T) {
	for name, opts := range map[string][]asterisque.Option{
		"by default":             nil,
		"this side has no Pings": {asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := asterisque.NewNode(append(opts, asterisque.WithService(largeResults()))...)
				defer node.Close()
				conns, sessions := testkit.Attackers(t, 10, node, testkit.Hello())
				for _, c := range conns {
					var asked []byte
					for id := range uint64(8) {
						asked = append(asked, testkit.Frames(&message.Open{Pipe: 2 * id, Function: 1})...)
					}
					_, err := c.Write(asked)
					require.NoError(t, err)
					go pingAlong(c, 10*time.Second) // ends with the connection
				}
				synctest.Wait()
				held := 0
				for _, s := range sessions {
					held += s.Stats().Outbound.Bytes
				}
				require.Greater(t, held, 20<<20)
				fakeclock.Sleep(6 * time.Minute)
				require.Empty(t, node.Sessions())
				for _, s := range sessions {
					require.ErrorIs(t, s.Err(), asterisque.ErrUnavailable)
					require.ErrorContains(t, s.Err(), "it has taken")
					require.LessOrEqual(t, s.Stats().Outbound.Bytes, 600<<10, "what was being written")
				}
			})
		})
	}
}

// TestLiveness_NoPings requires that a side that sends no Pings, but answers them, stays connected.
func TestLiveness_NoPings(t *testing.T) {
	for name, quiet := range map[string][2]bool{"the side that dialled": {true, false}, "the other side": {false, true}, "both sides": {true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nodes [2]*asterisque.Node
				for i := range nodes {
					nodes[i] = asterisque.NewNode()
					if quiet[i] {
						// a timeout that has no effect
						nodes[i] = asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1, Silence: 10 * time.Millisecond}))
					}
					defer nodes[i].Close()
				}
				a, b := wire.Pipe()
				from, back := &controlCounter{Wire: a}, &controlCounter{Wire: b}
				dialled, accepted := asterisquetest.ConnectOver(t, nodes[0], nodes[1], from, back)
				fakeclock.Sleep(time.Hour)
				require.NoError(t, dialled.Err())
				require.NoError(t, accepted.Err())
				for i, w := range []*controlCounter{from, back} {
					if quiet[i] {
						require.Zero(t, w.pings.Load())
					} else {
						require.InDelta(t, 3600/17, w.pings.Load(), 40)
					}
				}
				require.Equal(t, from.pings.Load(), back.pongs.Load())
				require.Equal(t, back.pings.Load(), from.pongs.Load())
			})
		})
	}
}

// foreignWire is a Wire to a peer that supports neither windows nor Pings.
type foreignWire struct{ wire.Wire }

func (foreignWire) MaxBlock() int { return 1 << 20 }

// The silence of a peer of another protocol carries no information.
func TestLiveness_Foreign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		a, b := wire.Pipe()
		defer a.Close()
		accepts := make(chan *asterisque.Session, 1)
		go func() { s, _ := node.Accept(testkit.Background, foreignWire{b}); accepts <- s }()
		p := &testkit.RawPeer{T: t, W: a}
		p.Send(testkit.Hello())
		p.Control()
		s := <-accepts
		fakeclock.Sleep(time.Hour)
		require.NoError(t, s.Err())
		s.Close()
		require.False(t, testkit.IsPing(p.Frame()))
	})
}

// lookCounter counts the calls of Progress of a Wire.
type lookCounter struct {
	wire.Wire
	looks *atomic.Int64
}

func (w *lookCounter) Receiving() int { return 0 }

func (w *lookCounter) Progress() (received, sent uint64) {
	w.looks.Add(1)
	return w.Wire.(wire.Meter).Progress()
}

// TestAttackPings_ShortInterval has a peer that requests very frequent Pings, and one with a very
// short timeout, beside honest peers.
func TestAttackPings_ShortInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const honest = 20
		node, peers := asterisque.NewNode(), asterisque.NewNode()
		defer node.Close()
		defer peers.Close()
		var looks atomic.Int64
		for range honest {
			a, b := net.Pipe()
			asterisquetest.ConnectOver(t, peers, node, wire.FromConn(a), &lookCounter{wire.FromConn(b), &looks})
		}
		inAMinute := func() int64 {
			before := looks.Load()
			fakeclock.Sleep(time.Minute)
			return looks.Load() - before
		}
		alone := inAMinute()
		require.InDelta(t, honest*60/1.875, alone, 5*honest)
		var bad []*testkit.RawPeer
		var sessions []*asterisque.Session
		for _, h := range []message.Sync{testkit.HelloWith(time.Millisecond, 45*time.Second), testkit.HelloWith(15*time.Second, time.Millisecond), testkit.HelloWith(3*time.Second, 0)} {
			conns, s := testkit.Attackers(t, 1, node, h)
			p := &testkit.RawPeer{T: t, W: wire.FromConn(conns[0])}
			_, pings := p.Alive(time.Hour)
			require.Less(t, inAMinute(), alone+alone/4)
			require.LessOrEqual(t, pings.Load(), int64(60))
			require.GreaterOrEqual(t, pings.Load(), int64(60/5))
			bad, sessions = append(bad, p), append(sessions, s...)
		}
		for i, p := range bad {
			require.NoError(t, sessions[i].Err())
			p.W.Close()
		}
		require.Less(t, inAMinute(), alone+alone/4)
	})
}

// TestAttackHalfMessage_CutOff sends a part of a large message and then single bytes at intervals:
// the session ends.
func TestAttackHalfMessage_CutOff(t *testing.T) {
	for name, c := range map[string]struct {
		opts []asterisque.Option
		want time.Duration
	}{
		"by default":             {nil, 45 * time.Second},
		"a timeout of this side": {[]asterisque.Option{asterisque.WithTimeouts(asterisque.Timeouts{Ping: 10 * time.Second, Silence: 2 * time.Minute})}, 2 * time.Minute},
		"this side has no Pings": {[]asterisque.Option{asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1})}, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := asterisque.NewNode(append(c.opts, asterisque.WithService(testkit.EchoService()))...)
				defer node.Close()
				conns, sessions := testkit.Attackers(t, 1, node, testkit.Hello())
				go io.Copy(io.Discard, conns[0]) // ends with the connection
				open := testkit.Frames(&message.Open{Function: 10, Params: testkit.RawText(4<<20 - 100)})
				begin := time.Now()
				conns[0].Write(open[:2<<20])
				for i := 2 << 20; sessions[0].Err() == nil && i < 2<<20+300; i++ {
					require.Positive(t, sessions[0].Stats().Receiving)
					conns[0].Write(open[i : i+1]) // an error is that of the end
					fakeclock.Sleep(time.Second)
				}
				require.ErrorIs(t, sessions[0].Err(), asterisque.ErrUnavailable)
				require.ErrorContains(t, sessions[0].Err(), "16384 bytes a second")
				require.GreaterOrEqual(t, time.Since(begin), c.want)
				require.LessOrEqual(t, time.Since(begin), c.want+15*time.Second)
				synctest.Wait()
				require.Zero(t, sessions[0].Stats().Receiving)
			})
		})
	}
}

// TestAttackHalfMessage_Resumed sends half a message on a resumable session: the node closes the
// wire, waits for another one, and ends the session when none comes.
func TestAttackHalfMessage_Resumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		defer node.Close()
		conns, sessions := testkit.Attackers(t, 1, node, testkit.Resumable())
		// ends with the connection
		go io.Copy(io.Discard, conns[0])
		for i, open := 0, testkit.Frames(&message.Open{Function: 10, Params: make([]byte, 1000)}); !sessions[0].Away(); i += 2 {
			// within 50 seconds
			conns[0].Write(open[i : i+2])
			fakeclock.Sleep(time.Second)
		}
		require.NoError(t, sessions[0].Err())
		fakeclock.Sleep(time.Minute)
		require.ErrorIs(t, sessions[0].Err(), asterisque.ErrUnavailable)
	})
}

// readsAhead is a Wire that has always received a part of the next message.
type readsAhead struct{ lookCounter }

func (*readsAhead) Receiving() int { return 1 }

// Time in which this side does not read does not count against the peer.
func TestLiveness_OwnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(1, "slow", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			fakeclock.Sleep(10 * time.Minute)
			return nil, nil
		}, asterisque.WithInline())
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		here, there := net.Pipe()
		defer here.Close()
		go node.Accept(testkit.Background, &readsAhead{lookCounter{wire.FromConn(there), new(atomic.Int64)}})
		p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
		p.Send(testkit.Hello())
		p.Control()
		p.Send(&message.Open{Pipe: 0, Function: 1})
		require.Nil(t, p.Close().Abort)
	})
}

// bareWire has only the five methods of Wire, and Meter on request.
type bareWire struct{ wire.Wire }

// TestLiveness_WholeMessages has a peer that sends single bytes at intervals. Over a Wire that does
// not count bytes, only complete messages show that the peer is alive.
func TestLiveness_WholeMessages(t *testing.T) {
	for name, wrap := range map[string]func(wire.Wire) wire.Wire{
		"it counts bytes": func(w wire.Wire) wire.Wire { return &lookCounter{w, new(atomic.Int64)} },
		"it does not":     func(w wire.Wire) wire.Wire { return bareWire{w} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
				defer node.Close()
				here, there := net.Pipe()
				defer here.Close()
				accepts := make(chan *asterisque.Session, 1)
				go func() { s, _ := node.Accept(testkit.Background, wrap(wire.FromConn(there))); accepts <- s }()
				p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
				p.Send(testkit.Hello())
				p.Control()
				s := <-accepts
				go io.Copy(io.Discard, here) // ends with the connection
				open := testkit.Frames(&message.Open{Function: 10, Params: make([]byte, 1000)})
				for i := range 60 {
					here.Write(open[i : i+1]) // an error is that of the end
					fakeclock.Sleep(time.Second)
				}
				if name == "it does not" {
					require.ErrorContains(t, s.Err(), "nothing was heard of it")
				} else {
					require.NoError(t, s.Err())
				}
			})
		})
	}
}

// TestAttackReading_Little asks for a large result, and reads 2 KiB of it a second: it is
// disconnected.
func TestAttackReading_Little(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(1, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 1000<<10), nil })
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		conns, sessions := testkit.Attackers(t, 1, node, testkit.Hello())
		for id := range uint64(12) {
			_, err := conns[0].Write(testkit.Frames(&message.Open{Pipe: 2 * id, Function: 1}))
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Greater(t, sessions[0].Stats().Outbound.Bytes, 12*1000<<10)
		go pingAlong(conns[0], 10*time.Second) // ends with the connection
		begin := time.Now()
		for some := make([]byte, 2<<10); sessions[0].Err() == nil && time.Since(begin) < time.Hour; fakeclock.Sleep(time.Second) {
			conns[0].Read(some) // an error is that of the end
		}
		require.ErrorIs(t, sessions[0].Err(), asterisque.ErrUnavailable)
		require.ErrorContains(t, sessions[0].Err(), "of the batch being written")
		require.InDelta(t, 330, time.Since(begin).Seconds(), 30)
		fakeclock.Sleep(20 * time.Second) // until no side pings any more
	})
}
