package parts

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// FuzzSession plays an arbitrary peer: data is a program of messages, most of them plausible. In
// every case, the session continues or ends with an Abort, never panics, counts nothing that does
// not exist, and leaves no goroutine behind, which synctest checks.
func FuzzSession(f *testing.F) {
	f.Add([]byte{0, 0, 10, 1, 0, 5, 2, 0, 1, 3, 0, 0})
	f.Add([]byte{0, 2, 50, 1, 2, 200, 1, 2, 100, 2, 2, 0, 3, 2, 1})
	f.Add([]byte{0, 0, 11, 4, 0, 9, 5, 0, 1, 6, 0, 0, 7, 0, 0, 0, 2, 10})
	f.Add([]byte{8, 0, 0xff, 9, 0, 0})
	// an abort between two parts of a call; the same after a Drain
	f.Add([]byte{13, 0, 0, 3, 3, 8, 13, 0, 0})
	f.Add([]byte{13, 0, 0, 13, 0, 0, 8, 3, 0, 3, 3, 9, 13, 0, 0})
	// Opens in parts that are canceled, given up, and complete; a Block in parts
	f.Add([]byte{10, 0, 10, 11, 0, 0, 3, 0, 2, 11, 0, 0, 10, 2, 1})
	f.Add([]byte{10, 0, 10, 12, 0, 0, 10, 2, 10, 11, 2, 0, 11, 2, 0, 11, 2, 0})
	f.Add([]byte{0, 0, 50, 10, 0, 100, 6, 0, 0, 11, 0, 0, 3, 0, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) { playProgram(t, data[:min(len(data), 600)]) })
	})
}

func playProgram(t *testing.T, data []byte) {
	svc := testkit.EchoService()
	testkit.Sums.Handle(svc, func(context.Context, testkit.Window, *asterisque.Pipe[int, int]) (int, error) { panic("called") })
	svc.Handle(50, "stream", testkit.WaitForContext)
	testkit.Block.Handle(svc, func(context.Context, string) (string, error) { panic("called") })
	node := asterisque.NewNode(asterisque.WithService(svc))
	defer node.Close()
	a, b := wire.Pipe()
	peer := &testkit.RawPeer{T: t, W: a}
	accepted := make(chan *asterisque.Session, 1)
	go func() { s, _ := node.Accept(testkit.Background, b); accepted <- s }()
	peer.Send(testkit.Hello())
	s := <-accepted
	own, err := s.Open(testkit.Background, 1, nil)
	require.NoError(t, err)
	large := make(chan error, 1) // a call in parts, of which the wire holds one
	go func() {
		_, err := s.Call(testkit.Background, 1, make([]byte, 200_000))
		large <- err
	}()
	reads := make(chan struct{}, len(data))
	go func() { // reads what the session says: a frame for each token, and all in the end
		for {
			<-reads
			if _, err := a.ReadFrame(1 << 22); err != nil {
				return
			}
		}
	}()
	synctest.Wait()
	for ; len(data) >= 3; data = data[3:] {
		if data[0]%steps == readsFrame {
			reads <- struct{}{}
			synctest.Wait()
		} else if a.WriteFrames([][]byte{step(data[0], uint64(data[1]), data[2])}) != nil {
			break
		}
	}
	close(reads)
	synctest.Wait()
	if s.Err() == nil {
		_, err := own.Post([]byte("still there"))
		var abort *asterisque.Abort
		require.True(t, err == nil || testkit.AsAbort(err, &abort) || err == asterisque.ErrPipeClosed, "%v", err)
	}
	a.Close()
	s.Close()
	if err := <-large; err != nil {
		var abort *asterisque.Abort
		require.True(t, testkit.AsAbort(err, &abort), "%v", err)
	}
	fakeclock.Sleep(time.Minute) // timers have run
	// Blocks of a call that succeeded belong to its reader, and count until the reader has received
	// them or stops.
	own.Stop()
	require.Zero(t, s.Stats().Pipes)
	require.Zero(t, s.Stats().Inbound, "what was discarded counts no longer")
}

const (
	steps      = 14
	readsFrame = 13 // the kind of a step that reads
)

// step returns the frame that one step of a program sends.
func step(kind byte, pipe uint64, arg byte) []byte {
	switch kind % steps {
	case 0:
		return (&message.Open{Pipe: pipe, Function: uint16(arg), Priority: int8(arg), Params: []byte{0x61, arg}, Meta: message.Meta{TTL: uint32(arg)}}).AppendTo(nil)
	case 1:
		return (&message.Block{Pipe: pipe, Payload: make([]byte, int(arg)*100)}).AppendTo(nil)
	case 2:
		return (&message.Block{Pipe: pipe, End: true}).AppendTo(nil)
	case 3:
		return (&message.Close{Pipe: pipe, Abort: &codec.Abort{Code: codec.Code(arg)}}).AppendTo(nil)
	case 4:
		return (&message.Close{Pipe: pipe, Result: []byte{arg}}).AppendTo(nil)
	case 5:
		return message.Credit{Pipe: pipe, Opens: arg == 0, Limit: uint64(arg) << 10}.AppendTo(nil)
	case 6:
		return message.Stop{Pipe: pipe}.AppendTo(nil)
	case 7:
		return message.Ping{N: pipe}.AppendTo(nil)
	case 8:
		return message.Drain{Last: pipe}.AppendTo(nil)
	case 10: // the first part of an Open, a Block or a result
		var m interface{ AppendTo([]byte) []byte } = &message.Open{Pipe: pipe, Function: uint16(arg), Params: make([]byte, 3000)}
		switch {
		case arg >= 200:
			m = &message.Close{Pipe: pipe, Result: make([]byte, 3000)}
		case arg >= 100:
			m = &message.Block{Pipe: pipe, Payload: make([]byte, 3000)}
		}
		return parts(m)[0].AppendTo(nil)
	case 11:
		return (&message.Part{Pipe: pipe, Bytes: make([]byte, 1024+int(arg))}).AppendTo(nil)
	case 12:
		return (&message.Part{Pipe: pipe, GivenUp: true}).AppendTo(nil)
	default:
		return binary.BigEndian.AppendUint16([]byte{arg}, uint16(pipe))
	}
}
