package parts

import (
	"context"
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

// partsOf returns the parts of a message, each of size bytes but the last.
func partsOf(m interface{ AppendTo([]byte) []byte }, size int) (parts []*message.Part) {
	whole := m.AppendTo(nil)
	part := message.Part{Pipe: testkit.PipeOf(whole), Whole: uint64(len(whole))}
	for ; len(whole) > 0; part.Whole = 0 {
		p := part
		p.Bytes = whole[:min(size, len(whole))]
		whole = whole[len(p.Bytes):]
		parts = append(parts, &p)
	}
	return parts
}

// waitsForever is a service with a function 1 that takes Blocks, and waits for the end of its call.
func waitsForever() asterisque.Option {
	svc := asterisque.NewService()
	svc.Handle(1, "waits", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	return asterisque.WithService(svc)
}

// streamOf returns the Open of a stream.
func streamOf(pipe uint64) *message.Open {
	return &message.Open{Pipe: pipe, Function: 1, Meta: message.Meta{Stream: true}}
}

type anyMessage = interface{ AppendTo([]byte) []byte }

// Parts that break a rule end the session.
func TestAttackParts_BadRule(t *testing.T) {
	block := partsOf(&message.Block{Payload: make([]byte, 3000)}, 1024)
	open := partsOf(&message.Open{Pipe: 6, Function: 1, Params: make([]byte, 3000)}, 1024)
	for reason, says := range map[string][]anyMessage{
		"of which no message is unfinished":          {streamOf(0), block[1]},
		"message for pipe 8, which was never opened": {&message.Part{Pipe: 8, GivenUp: true}},
		"message for pipe 2, which was never opened": {partsOf(&message.Block{Pipe: 2, Payload: make([]byte, 3000)}, 1024)[0]},
		"Block for pipe 0, of which a message":       {streamOf(0), block[0], &message.Block{}},
		"result for pipe 0, of which a message":      {streamOf(0), block[0], &message.Close{Result: []byte{1}}},
		"Skip for pipe 0, of which a message":        {streamOf(0), block[0], message.Skip{Sent: 4096}},
		"Block for pipe 6, of which a message":       {open[0], &message.Block{Pipe: 6}},
		"Skip for pipe 6, of which a message":        {open[0], message.Skip{Pipe: 6, Sent: 4096}},
		"and the one before is unfinished":           {streamOf(0), block[0], block[0]},
		"which the peer has opened":                  {streamOf(0), partsOf(&message.Close{Result: make([]byte, 3000)}, 1024)[0]},
		"not above the last, 6":                      {open[0], streamOf(4)},
		"one of the other side's":                    {partsOf(&message.Open{Pipe: 5, Params: make([]byte, 3000)}, 1024)[0]},
		"after the end of its direction":             {streamOf(0), &message.Block{End: true}, block[0]},
		"Block for pipe 0 after the end":             {&message.Open{Function: 1}, block[0]},
		"and the largest has":                        {partsOf(&message.Open{Params: make([]byte, 5<<20)}, 1024)[0]},
		"frame exceeds the limit":                    {&message.Block{Payload: make([]byte, 66<<10)}},
	} {
		p, s := testkit.DialRaw(t, waitsForever(), asterisque.WithWorkers(asterisque.Workers{Session: 4}))
		for _, m := range says {
			p.SendFrame(m.AppendTo(nil))
		}
		<-s.Done()
		require.ErrorIs(t, s.Err(), codec.ErrProtocol)
		require.ErrorContains(t, s.Err(), reason)
	}
}

// TestAttackParts_ManyOpens begins as many as it can: an unfinished one has room, or is refused
// when it begins.
func TestAttackParts_ManyOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(waitsForever())
		defer node.Close()
		p, reply := testkit.RawTo(t, node, testkit.Hello())
		s := node.Sessions()[0]
		refused := make(chan int)
		const opens = 100
		go func() {
			n := 0
			for ; n < opens; n++ {
				f, err := p.W.ReadFrame(message.MaxFrame)
				if err != nil {
					break
				}
				if c, err := message.ParseClose(f); err != nil || c.Abort.Code != codec.WindowViolation {
					break // it is the Pong
				}
			}
			refused <- n
		}()
		for i := range uint64(opens) {
			parts := partsOf(&message.Open{Pipe: 2 * i, Function: 1, Params: make([]byte, 1<<20)}, 1024)
			p.Send(parts[0])
			p.Send(parts[1]) // late, where the Open is refused
		}
		p.Send(message.Ping{N: 1})
		n := <-refused
		require.Positive(t, n)
		require.Equal(t, opens-n, s.Stats().Receiving>>20)
		attack.Bounded(t, "bytes of parameters that have begun to come, of the room for Opens and nested ones", s.Stats().Receiving, int(reply.Opens+reply.NestedRoom))
		fakeclock.Sleep(10 * time.Second) // until the check has run
		require.Greater(t, node.Stats().Held, s.Stats().Receiving)
		for i := range uint64(opens) {
			p.Send(&message.Part{Pipe: 2 * i, GivenUp: true})
		}
		synctest.Wait()
		require.Zero(t, s.Stats().Receiving)
		require.NoError(t, s.Err())
	})
}

// A Block in parts beyond its window ends the call.
func TestAttackParts_BeyondWindow(t *testing.T) {
	p, s := testkit.DialRaw(t, waitsForever())
	p.Send(streamOf(0))
	parts := partsOf(&message.Block{Payload: make([]byte, 1<<20)}, 1024)
	const window = 64 // parts, which a function that does not receive grants at most
	for _, part := range parts[:window] {
		p.Send(part)
	}
	require.Equal(t, codec.WindowViolation, p.Answer().Abort.Code)
	p.Send(parts[window], parts[window+1], message.Ping{N: 1})
	p.Until(message.Pong{N: 1})
	require.Zero(t, s.Stats().Receiving)
}

// TestParts_AbortUnfinished: an abort by the caller, and by the callee, ends an unfinished message.
func TestParts_AbortUnfinished(t *testing.T) {
	p, s := testkit.DialRaw(t, waitsForever())
	block := partsOf(&message.Block{Payload: make([]byte, 2000)}, 1024)
	p.Send(streamOf(0), block[0], message.Ping{N: 1})
	p.Until(message.Pong{N: 1})
	require.Equal(t, 2006, s.Stats().Receiving)
	p.Send(&message.Close{Abort: codec.ErrCanceled}, block[1], message.Ping{N: 2})
	p.Until(message.Pong{N: 2})
	require.Zero(t, s.Stats().Receiving)

	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(testkit.Background)
	go func() { _, err := s.Call(ctx, 1, nil); done <- err }()
	id := p.Open().Pipe
	result := partsOf(&message.Close{Pipe: id, Result: make([]byte, 2000)}, 1024)
	p.Send(result[0], message.Ping{N: 3})
	p.Until(message.Pong{N: 3})
	require.Equal(t, 2007, s.Stats().Receiving)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Zero(t, s.Stats().Receiving)
	require.Equal(t, codec.Canceled, p.Answer().Abort.Code)
	p.Send(result[1], message.Ping{N: 4})
	p.Until(message.Pong{N: 4})
}

// The time limit of a message counts from its first part.
func TestParts_TimeFromFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(waitsForever())
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		parts := partsOf(&message.Open{Function: 1, Params: make([]byte, 2000), Meta: message.Meta{TTL: 10_000}}, 1024)
		begin := time.Now()
		p.Send(parts[0])
		fakeclock.Sleep(4 * time.Second)
		p.Send(parts[1])
		require.Equal(t, codec.Expired, p.Close().Abort.Code)
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Second))
	})
}

// TestParts_UrgentBeside64MiB requires that an echo waits for at most one part of the messages of
// 64 MiB that cross in both directions.
func TestParts_UrgentBeside64MiB(t *testing.T) {
	testkit.SkipRace(t)
	const size = 64 << 20
	svc := testkit.EchoService()
	svc.Handle(1, "same", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil })
	large := asterisque.WithLimits(asterisque.Limits{MaxMessage: size + 1024, Inbound: limits.Limits{Soft: limits.Amount{Bytes: 9 * size}}})
	here, there := asterisque.NewNode(large), asterisque.NewNode(large, asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	s, peer := testkit.ConnectNodes(t, here, there)
	params := make([]byte, size)
	for i := range params {
		params[i] = byte(i >> 10)
	}
	done := make(chan []byte, 1)
	go func() {
		result, err := s.Call(testkit.Background, 1, params, asterisque.WithPriority(-1))
		require.NoError(t, err)
		done <- result
	}()
	between := 0
	for {
		select {
		case result := <-done:
			require.Equal(t, len(params), len(result))
			require.True(t, string(params) == string(result))
			require.Greater(t, between, 20, "echoes while it was on its way")
			require.Zero(t, s.Stats().Receiving+peer.Stats().Receiving)
			return
		default:
			_, err := testkit.Echo.Call(testkit.Background, s, "urgent", asterisque.WithPriority(1))
			require.NoError(t, err)
			if s.Stats().Receiving > 0 || peer.Stats().Receiving > 0 {
				between++
			}
			runtime.Gosched()
		}
	}
}

// TestParts_OpenEndedByCallee makes the callee end Opens between their parts, repeatedly, and
// requires that it needs and grants no additional room.
func TestParts_OpenEndedByCallee(t *testing.T) {
	for name, call := range map[string]partedCall{"unary": callParted(), "stream": openParted(func(*pipe.Pipe) {})} {
		synctest.Test(t, func(t *testing.T) {
			r := newPartedRig(t, true) // with room for five of them
			for i := range 50 {
				done := make(chan error, 1)
				go func() { done <- call.made(testkit.Background, r.s) }()
				r.parts = 0
				r.readParts(1)
				closedWith(codec.Overloaded, codec.MaybeRan)(r, nil)
				synctest.Wait() // the outbox drops the Open after its caller knows
				err := r.outcome(done)
				require.ErrorIs(t, err, asterisque.ErrOverloaded, "%s %d", name, i)
				require.True(t, asterisque.Repeatable(err), name)
				r.readParts(2) // one was being written
			}
		})
	}
}

// TestAttackParts_BeginAndEnd begins Opens and ends them, in each way that the peer has. None of
// them leaves anything behind.
func TestAttackParts_BeginAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceivedRig(t, false)
		r.listen()
		const opens = 2000
		for i := range uint64(opens) {
			id := r.own(1 + i)
			r.say(parts(&message.Open{Pipe: id, Function: 1, Params: make([]byte, 3000)})[0])
			if i%2 == 0 {
				r.say(&message.Part{Pipe: id, GivenUp: true})
			} else {
				r.say(&message.Close{Pipe: id, Abort: codec.ErrCanceled})
			}
		}
		synctest.Wait()
		require.Zero(t, r.s.Stats().Receiving)
		r.s.Shutdown(testkit.Background)
		attack.Bounded(t, "Opens that a Drain refuses, of those that have ended", len(r.got), 0)
		<-r.over
	})
}
