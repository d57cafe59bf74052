//go:build !js

package wswire_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// masked returns the head of a binary message from a client, with a payload masked with zeros.
func masked(size int) []byte {
	b := binary.BigEndian.AppendUint64([]byte{0x82, 0xff}, uint64(size))
	return append(b, 0, 0, 0, 0)
}

// Receiving is the memory of half a message.
func TestReceiving_HalfMessage(t *testing.T) {
	const size, chunk = 1 << 20, 32 << 10
	url, wires := serve(t)
	c := rawUpgrade(t, url)
	w := <-wires
	defer w.Close()
	r := w.(wire.Meter)
	frames := make(chan int)
	go func() { // ends with w
		defer close(frames)
		for {
			f, err := w.ReadFrame(size)
			if err != nil {
				return
			}
			frames <- len(f)
		}
	}()
	message := append(masked(size), make([]byte, size)...)
	for range 2 {
		require.Zero(t, r.Receiving())
		sent := 0
		for _, half := range []struct{ sent, want int }{
			{20, chunk}, {chunk, chunk}, {3 * chunk, 4 * chunk}, {size - chunk, size},
		} {
			_, err := c.Write(message[sent:half.sent])
			require.NoError(t, err)
			sent = half.sent
			is := func() bool { return r.Receiving() == half.want }
			require.Eventually(t, is, hangs, time.Millisecond, "%v", half)
		}
		_, err := c.Write(message[sent:])
		require.NoError(t, err)
		require.Equal(t, size, <-frames)
	}
	require.Zero(t, r.Receiving())
	_, err := c.Write(message[:100])
	require.NoError(t, err)
	is := func() bool { return r.Receiving() == chunk }
	require.Eventually(t, is, hangs, time.Millisecond)
	require.NoError(t, w.Close())
	<-frames
	require.Zero(t, r.Receiving(), "a Wire that is closed holds nothing")
}

// An idle Wire holds little memory after a large frame.
func TestIdle_AfterLargeFrame(t *testing.T) {
	const n, size = 10, 2 << 20
	l := listen(t, "ws://127.0.0.1:0/", wire.Options{})
	frame := make([]byte, size)
	before := weightest.Heap()
	var ends []wire.Wire
	reads := make(chan error, 2*n)
	for range n {
		a, b := connect(t, l, wire.Options{})
		ends = append(ends, a, b)
		go a.WriteFrames([][]byte{frame}) // these end with the read, and with the wires
		_, err := b.ReadFrame(size)
		require.NoError(t, err)
		for _, w := range []wire.Wire{a, b} {
			go func() {
				_, err := w.ReadFrame(size)
				reads <- err
			}()
		}
	}
	// The goroutines may not have reached their wait yet.
	held := weightest.HeldSince(before, n*40<<10-1)
	runtime.KeepAlive(frame)
	t.Logf("%d bytes for a pair of idle wires", held/n)
	require.Less(t, held/n, 40<<10)
	for _, w := range ends {
		w.Close()
	}
	for range ends {
		<-reads
	}
}
