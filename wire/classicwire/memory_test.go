package classicwire_test

import (
	"encoding/hex"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// offering is a connection that records the size of the buffer of each Read.
type offering struct {
	net.Conn
	last *atomic.Int64
}

func (o offering) Read(p []byte) (int, error) {
	o.last.Store(int64(len(p)))
	return o.Conn.Read(p)
}

// An idle wire holds little memory, and reports that of half a message.
func TestMemory_WaitingWire(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		const idle = 1 << 10
		// bytes of a Block's head, for a payload of more than 255 bytes
		blockHead := map[classic.Codec]int{classic.MessagePack: 8, classic.Simple: 6}
		here, there := net.Pipe()
		o := offering{here, new(atomic.Int64)}
		waits := func(inIdle bool) {
			t.Helper()
			is := func() bool { return (o.last.Load() == idle) == inIdle }
			require.Eventually(t, is, patience, time.Millisecond)
		}
		w := classicwire.Client(o)
		defer w.Close()
		frames := make(chan int)
		ended := make(chan struct{})
		go func() { // ends with w
			defer close(ended)
			for {
				f, err := w.ReadFrame(most)
				if err != nil {
					return
				}
				frames <- len(f)
			}
		}()
		write := func(b []byte) {
			_, err := there.Write(b)
			require.NoError(t, err)
		}
		sync, err := hex.DecodeString(compact(serverSync))
		require.NoError(t, err)
		write(recodeAll(t, classic.Simple, form, sync))
		<-frames
		pipe, err := open(0x8000, 10).AppendTo(nil, form)
		require.NoError(t, err)
		write(pipe)
		<-frames
		for _, size := range []int{idle, 32 << 10, 60_000} {
			// Each of these messages fills a buffer.
			block, err := (&classic.Block{Pipe: 0x8000, Payload: make([]byte, size-blockHead[form])}).AppendTo(nil, form)
			require.NoError(t, err)
			require.Len(t, block, size)
			require.Zero(t, w.(wire.Meter).Receiving())
			half := min(size/2, idle)
			write(block[:half])
			waits(false)
			require.GreaterOrEqual(t, w.(wire.Meter).Receiving(), half)
			require.LessOrEqual(t, w.(wire.Meter).Receiving(), 40<<10)
			write(block[half:])
			<-frames
			waits(true)
			require.Zero(t, w.(wire.Meter).Receiving())
		}
		w.Close()
		<-ended
	})
}
