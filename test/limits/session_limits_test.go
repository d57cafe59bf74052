package limits

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// At the inbound soft limit, the sender of the peer blocks.
func TestSoftLimit_Inbound(t *testing.T) {
	const soft = 256 << 10
	svc, gate, running, took := testkit.GatedService()
	var seen testkit.States
	there := asterisque.NewNode(append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(soft, 2*soft)}), seen.Option())...)
	here := asterisque.NewNode(append(testkit.NoWindows(), asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(soft, 2*soft)}))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	var pipes []*pipe.Pipe // more than one: each stands at its own share of the queue, too
	for range 8 {
		p, err := dialled.Open(testkit.Background, 50, nil)
		require.NoError(t, err)
		<-running
		pipes = append(pipes, p)
	}
	p := pipes[0]

	var sent atomic.Int64
	send := func(p *pipe.Pipe) error { // until it is held up
		for {
			ctx, cancel := context.WithTimeout(testkit.Background, 50*time.Millisecond)
			err := p.Send(ctx, make([]byte, 10_000))
			cancel()
			switch {
			case err == nil:
				sent.Add(10_000)
			case !errors.Is(err, asterisque.ErrExpired), accepted.Stats().InboundState == limits.Soft:
				return err
			}
		}
	}
	for dialled.Stats().OutboundState != limits.Soft {
		for _, p := range pipes {
			require.ErrorIs(t, send(p), asterisque.ErrExpired, "Send waits in the end, and its context ends the wait")
		}
	}
	require.Less(t, sent.Load(), int64(20<<20), "what is on its way is bounded by limits and the kernel's buffers")
	st := accepted.Stats()
	require.Equal(t, limits.Soft, st.InboundState)
	require.Less(t, st.Inbound.Bytes, soft+10_000+512+1, "reading has stopped")
	slow, ok := accepted.SlowestPipe()
	require.True(t, ok)
	require.EqualValues(t, 50, slow.Function, "the report names the largest holder")
	require.Greater(t, slow.Waiting.Bytes, soft/2)

	close(gate)
	require.NoError(t, p.Send(testkit.Background, make([]byte, 10_000)))
	for _, p := range pipes {
		require.NoError(t, p.CloseSend())
		_, err := p.Result(testkit.Background)
		require.NoError(t, err)
	}
	require.Equal(t, sent.Load()+10_000, took.Load(), "nothing is lost")
	testkit.Settled(t, func() bool { list := seen.List(); return len(list) > 0 && list[len(list)-1] == "inbound ready" })
	require.Contains(t, seen.List(), "inbound soft")
	_, ok = accepted.SlowestPipe()
	require.False(t, ok, "nothing waits any more")
}

// A peer that floods regardless is blocked by its transport.
func TestSoftLimit_FloodingPeer(t *testing.T) {
	const soft, flood = 100 * 272, 100_000
	for name, c := range map[string]struct {
		function uint16
		message  func(i int) interface{ AppendTo([]byte) []byte }
	}{
		"one-byte Blocks": {50, func(int) interface{ AppendTo([]byte) []byte } { return &message.Block{Payload: []byte{1}} }},
		"Opens": {51, func(i int) interface{ AppendTo([]byte) []byte } {
			return &message.Open{Pipe: uint64(2 * i), Function: 51}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, gate, running, _ := testkit.GatedService()
				svc.Handle(51, "gated call", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
					select {
					case running <- struct{}{}:
					default:
					}
					<-gate
					return nil, nil
				})
				opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(soft, 2*soft)}))
				p, s := testkit.StuckPeer(t, opts...)
				p.Send(&message.Open{Function: c.function, Meta: message.Meta{Stream: true}})
				<-running
				var sent atomic.Int64
				flooded := make(chan struct{})
				go func() {
					defer close(flooded)
					for i := range flood {
						p.W.WriteFrames([][]byte{c.message(i + 1).AppendTo(nil)})
						sent.Add(1)
					}
				}()
				synctest.Wait()
				require.Less(t, sent.Load(), int64(20_000), "the peer is held up: what it sends stays in the wire")
				st := s.Stats()
				require.Equal(t, limits.Soft, st.InboundState)
				require.LessOrEqual(t, st.Inbound.Bytes, soft+512, "tiny messages cannot hide")
				close(gate)
				go io.Copy(io.Discard, reading{p.W})
				<-flooded
				synctest.Wait()
				require.Zero(t, s.Stats().Inbound, "all was read, as the application took it")
				require.NoError(t, s.Err())
			})
		})
	}
}

// reading makes a Reader of a Wire, to discard its content.
type reading struct{ wire.Wire }

func (r reading) Read([]byte) (int, error) { _, err := r.ReadFrame(1 << 20); return 0, err }

// At the outbound soft limit, senders block, and Post returns an error.
func TestSoftLimit_Outbound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen testkit.States
		peer, s := testkit.StuckPeer(t, asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(100_000, 300_000)}), seen.Option())
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		var state limits.State
		for state != limits.Soft {
			state, err = p.Post(make([]byte, 10_000))
			require.NoError(t, err)
		}
		require.Equal(t, limits.Soft, s.Stats().OutboundState)

		waits := map[string]func(context.Context) error{
			"Send":  func(ctx context.Context) error { return p.Send(ctx, []byte("x")) },
			"Call":  func(ctx context.Context) error { _, err := s.Call(ctx, 1, nil); return err },
			"Open":  func(ctx context.Context) error { _, err := s.Open(ctx, 1, nil); return err },
			"typed": func(ctx context.Context) error { _, err := testkit.Echo.Call(ctx, s, ""); return err },
		}
		for name, wait := range waits {
			ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
			err := wait(ctx)
			cancel()
			require.ErrorIs(t, err, asterisque.ErrExpired, name)
			require.True(t, asterisque.Repeatable(err), "%s was never sent", name)
		}
		state, err = p.Post([]byte("x"))
		require.NoError(t, err, "Post continues")
		require.Equal(t, limits.Soft, state)

		sent := make(chan error)
		go func() { sent <- p.Send(testkit.Background, []byte("last")) }()
		synctest.Wait()
		for { // the peer reads again
			b, err := message.ParseBlock(peer.Frame())
			if err == nil && string(b.Payload) == "last" {
				break
			}
		}
		require.NoError(t, <-sent)
		synctest.Wait()
		require.Equal(t, []string{"outbound congested", "outbound soft", "outbound congested", "outbound ready"}, seen.List())
	})
}

// The end of the session ends the wait for room.
func TestSoftLimit_SessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := testkit.StuckPeer(t, asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(100_000, 300_000)}))
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		for state := limits.Ready; state != limits.Soft; {
			state, err = p.Post(make([]byte, 10_000))
			require.NoError(t, err)
		}
		errs := make(chan error)
		go func() { errs <- p.Send(testkit.Background, nil) }()
		go func() { _, err := s.Call(testkit.Background, 1, nil); errs <- err }()
		synctest.Wait()
		s.Close()
		require.ErrorIs(t, <-errs, asterisque.ErrSessionClosed)
		require.ErrorIs(t, <-errs, asterisque.ErrSessionClosed)
	})
}

// Beyond the outbound hard limit the session is aborted.
func TestHardLimit_Outbound(t *testing.T) {
	const hard = 20 << 20
	node := asterisque.NewNode(asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(hard/2, hard)}))
	other := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
	t.Cleanup(func() { node.Close(); other.Close() })
	good, _ := testkit.ConnectNodes(t, node, other)
	a, b := wire.Pipe()
	t.Cleanup(func() { a.Close() })
	peer := &testkit.RawPeer{T: t, W: a}
	go func() { peer.Send(testkit.Hello()) }()
	s, err := node.Accept(testkit.Background, b)
	require.NoError(t, err)
	p, err := s.Open(testkit.Background, 1, nil)
	require.NoError(t, err)
	call := make(chan error)
	go func() { _, err := s.Call(testkit.Background, 1, nil); call <- err }()

	before := weightest.Heap()
	for err == nil {
		_, err = p.Post(make([]byte, 100_000))
	}
	require.ErrorIs(t, err, asterisque.ErrHardLimit)
	require.ErrorContains(t, err, "outbound: ")
	require.ErrorContains(t, err, "and the limit is 20971520 bytes")
	require.ErrorIs(t, <-call, asterisque.ErrHardLimit, "everything that runs is aborted")
	require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
	s.Close()
	require.Less(t, weightest.HeldSince(before, 2<<20), 2<<20, "queues are empty and memory is back")
	_, err = testkit.Echo.Call(testkit.Background, good, "")
	require.NoError(t, err, "other sessions of the node continue")
}

// Beyond the inbound hard limit the peer gets the reason.
func TestHardLimit_Inbound(t *testing.T) {
	svc, _, running, _ := testkit.GatedService()
	opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Hard: limits.Amount{Messages: 10}}}))
	p, s := testkit.DialRaw(t, opts...)
	p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
	<-running
	for range 11 {
		p.Send(&message.Block{Payload: []byte("x")})
	}
	p.WantSessionClose(codec.HardLimit, "inbound: 11 messages, 5643 bytes wait, and the limit is 10 messages")
	<-s.Done()
	require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
}

// A session without progress is closed.
func TestStalled_Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, gate, running, _ := testkit.GatedService()
		defer close(gate)
		opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 20)}))
		p, s := testkit.StuckPeer(t, opts...)
		p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
		<-running
		begin := time.Now()
		for range 10 {
			p.Send(&message.Block{Payload: []byte("x")})
		}
		p.WantSessionClose(codec.Stalled, "10 messages, 5130 bytes wait, and the application has taken none for 1m0s")
		require.Equal(t, time.Minute, time.Since(begin))
		<-s.Done()
		require.ErrorIs(t, s.Err(), asterisque.ErrStalled)
	})
}

// A session with little progress is not stalled.
func TestStalled_NotIfItMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(50, "slow", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			for range 10 {
				fakeclock.Sleep(50 * time.Second)
				p.Recv(ctx)
			}
			return nil, nil
		})
		opts := append(testkit.NoWindows(), asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 20)}))
		p, s := testkit.StuckPeer(t, opts...)
		p.Send(&message.Open{Function: 50, Meta: message.Meta{Stream: true}})
		for range 10 {
			p.Send(&message.Block{Payload: []byte("x")})
		}
		require.Nil(t, p.Close().Abort)
		require.NoError(t, s.Err())
	})
}

// The application pauses a session.
func TestPause_Session(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := testkit.StuckPeer(t, asterisque.WithService(testkit.EchoService()))
		synctest.Wait() // the session waits for a frame
		s.StopReading()
		s.StopReading()
		p.Send(message.Ping{N: 1})
		require.Equal(t, message.Pong{N: 1}, p.Control(), "it still answers Pings")
		p.Send(&message.Open{Pipe: 0, Function: 10, Params: []byte("\x61x")}, message.Ping{N: 2})
		_, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		_, err = message.ParseOpen(p.Frame())
		require.NoError(t, err, "what it sends goes out all the same")
		fakeclock.Sleep(time.Hour) // a pause is not a stall
		require.NoError(t, s.Err())
		require.Equal(t, 0, s.Stats().Waiting, "the call, and what is behind it, is not read")
		s.StartReading()
		s.StartReading()
		for range 2 { // in any order
			frame := p.Frame()
			if m, err := message.ParseControl(frame); err == nil {
				require.Equal(t, message.Pong{N: 2}, m)
				continue
			}
			_, err := message.ParseClose(frame)
			require.NoError(t, err)
		}
		s.StopReading()
		s.Close()
	})
}

// The application pauses a pipe.
func TestPause_Pipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer, s := testkit.StuckPeer(t)
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		peer.Frame()
		p.StopReading()
		peer.Send(&message.Block{Pipe: 1, Payload: []byte("x")}, &message.Block{Pipe: 1, End: true})
		ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
		defer cancel()
		_, err = p.Recv(ctx)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		p.StartReading()
		b, err := p.Recv(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, "x", string(b.Payload))
		_, err = p.Recv(testkit.Background)
		require.Equal(t, io.EOF, err)
	})
}

// Limits change on a live session.
func TestLimits_ChangeLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := testkit.StuckPeer(t)
		p, err := s.Open(testkit.Background, 1, nil)
		require.NoError(t, err)
		for range 100 {
			_, err := p.Post(make([]byte, 10_000))
			require.NoError(t, err)
		}
		require.ErrorContains(t, s.SetLimits(testkit.Messages(5, 4), limits.Limits{}), "inbound: limits: soft limit of 5 messages must be below")
		require.ErrorContains(t, s.SetLimits(limits.Limits{}, testkit.Messages(5, 4)), "outbound: limits: ")
		require.NoError(t, s.SetLimits(limits.Limits{}, testkit.Messages(50, 200)))
		require.Equal(t, limits.Soft, s.Stats().OutboundState)
		require.NoError(t, s.SetLimits(limits.Limits{}, limits.Limits{}))
		require.Equal(t, limits.Congested, s.Stats().OutboundState)
		require.NoError(t, s.SetLimits(limits.Limits{}, testkit.Messages(1, 2)))
		require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
	})
}
