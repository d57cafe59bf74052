package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// absurd are values that a hostile server announces.
var absurd = []uint64{0, 1, 511, 512, 4096, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<53 - 1}

func anyOfThem(r *rand.Rand) uint64 { return absurd[r.IntN(len(absurd))] }

// absurdHello returns the first message of a hostile server.
func absurdHello(r *rand.Rand) message.Sync {
	h := testkit.Hello()
	h.Session = make([]byte, message.SessionSize)
	h.MaxMessage = max(anyOfThem(r), 1<<16)
	h.Window, h.Opens = anyOfThem(r), anyOfThem(r)
	if r.IntN(4) == 0 {
		h.Window, h.Overhead = 1<<53-1, max(anyOfThem(r), message.MinOverhead)
	}
	h.NestedRoom, h.NestedCalls = anyOfThem(r), anyOfThem(r)
	h.Ping, h.Timeout = time.Duration(r.Int64N(1e12)), time.Duration(r.Int64N(1e12))
	return h
}

// beginOfBlock returns the first part of a Block of n bytes, or of 1 KiB if that is more.
func beginOfBlock(pipe uint64, n int) *message.Part {
	frame := (&message.Block{Pipe: pipe, Payload: make([]byte, max(n, message.LeastPart))}).AppendTo(nil)
	return &message.Part{Pipe: pipe, Bytes: frame[:message.LeastPart], Whole: uint64(len(frame))}
}

// nonsense answers an Open: with credits for its pipe, more and less than is ever sent.
func nonsense(r *rand.Rand, frame []byte, own *uint64) (b []byte) {
	if m, err := message.ParseBlock(frame); err == nil {
		return testkit.Frames(message.Credit{Pipe: m.Pipe, Limit: anyOfThem(r)}, message.Skip{Pipe: m.Pipe, Sent: 0})
	}
	m, err := message.ParseOpen(frame)
	if err != nil {
		return nil
	}
	for range r.IntN(8) {
		switch r.IntN(7) {
		case 0:
			b = append(b, testkit.Frames(message.Credit{Opens: true, Limit: anyOfThem(r)})...)
		case 1:
			b = append(b, testkit.Frames(message.Credit{Pipe: m.Pipe, Limit: anyOfThem(r)})...)
		case 2:
			b = append(b, testkit.Frames(beginOfBlock(m.Pipe, r.IntN(1<<20)))...)
		case 3:
			b = append(b, testkit.Frames(beginOfBlock(m.Pipe, r.IntN(1<<20)), &message.Part{Pipe: m.Pipe, GivenUp: true})...)
		case 4:
			*own += 2
			open := &message.Open{Pipe: *own, Function: 72}
			open.Meta.Stream, open.Meta.Window = r.IntN(2) == 0, anyOfThem(r)
			b = append(b, testkit.Frames(testkit.Within(open, m.Pipe))...)
		case 5:
			b = append(b, testkit.Frames(message.Drain{Last: anyOfThem(r)})...)
		case 6:
			b = append(b, testkit.Frames(&message.Close{Pipe: m.Pipe, Abort: &codec.Abort{
				Code: codec.Code(r.Uint32()), Message: strings.Repeat("x", r.IntN(1<<16)), Detail: make([]byte, r.IntN(1<<16)), Ran: codec.Ran(2 * r.IntN(2)),
			}})...)
			return b
		}
	}
	return b
}

// TestAttackServer_Numbers dials servers that announce, grant and ask for arbitrary numbers.
func TestAttackServer_Numbers(t *testing.T) {
	for seed := range uint64(testkit.Long(60, 3000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playWithAbsurdServer(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func playWithAbsurdServer(t *testing.T, r *rand.Rand) {
	node := asterisque.NewNode(asterisque.WithService(testkit.CallsBack()), asterisque.WithMaxOutstanding(5, 2))
	defer node.Close()
	here, there := net.Pipe()
	defer there.Close()
	p := &testkit.RawPeer{T: t, W: wire.FromConn(there)}
	say := absurdHello(r)
	go func() { // ends with the connection
		p.Control()
		p.Send(say)
		own := uint64(1)
		for {
			f, err := p.W.ReadFrame(8 << 20)
			if err != nil {
				return
			}
			if b := nonsense(r, f, &own); b != nil {
				go there.Write(b) // ends with the connection
				synctest.Wait()
			}
		}
	}()
	s, err := node.Attach(testkit.Background, wire.FromConn(here))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { s.Call(ctx, uint16(i), make([]byte, 100<<i)) })
		wg.Go(func() {
			call, err := s.Open(ctx, uint16(i), nil)
			if err != nil {
				return
			}
			for range 4 {
				call.Send(ctx, make([]byte, 200<<i))
				call.Post(make([]byte, 300<<i), pipe.WithTTL(time.Second))
			}
			call.Recv(ctx)
		})
	}
	wg.Wait()
	s.Close()
	<-s.Done()
	synctest.Wait()
	require.Empty(t, testkit.Busy(s))
	st := s.Stats()
	require.Zero(t, st.Holding)
	require.Zero(t, node.Stats().Lent+node.Stats().Busy)
}

// TestAttackServer_Farewell ends the session with a reason of 60 KiB, which would be kept, and
// logged.
func TestAttackServer_Farewell(t *testing.T) {
	p, s := testkit.DialRaw(t)
	const size = 60 << 10
	// The frame is built by hand because AppendTo would truncate it.
	frame := binary.BigEndian.AppendUint16([]byte{0x84, 0, 7, 0x19, 0x12, 0x67, 0x79}, size)
	p.SendFrame(append(frame, strings.Repeat("so long", size/7+1)[:size]...))
	<-s.Done()
	var a *asterisque.Abort
	require.True(t, testkit.AsAbort(s.Err(), &a))
	require.Equal(t, codec.Code(4711), a.Code)
	require.True(t, a.Remote)
	require.Contains(t, a.Message, "so long")
	attack.Bounded(t, "bytes kept of why a session ends", len(a.Message), codec.MaxReason+4)
}
