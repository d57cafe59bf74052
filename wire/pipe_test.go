package wire_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// A Pipe holds 64 KiB, and then blocks.
func TestPipe_Holds64KiB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wire.Pipe()
		frame := make([]byte, 1<<10-4)
		n := 0
		ended := make(chan error)
		go func() {
			for {
				if err := a.WriteFrames([][]byte{frame}); err != nil {
					ended <- err
					return
				}
				n++
			}
		}()
		synctest.Wait()
		require.Equal(t, 64, n, "of 1 KiB each with their lengths")
		_, err := b.ReadFrame(1 << 10)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 65, n, "one was read")
		b.Close()
		require.ErrorIs(t, <-ended, io.ErrClosedPipe)
	})
}

// A Pipe delivers data written before Close.
func TestPipe_ReadAfterClose(t *testing.T) {
	a, b := wire.Pipe()
	require.NoError(t, a.WriteFrames([][]byte{[]byte("first"), []byte("second")}))
	n, err := a.(wire.TryWriter).TryWriteBatch(stream("third")[:6])
	require.NoError(t, err)
	require.Equal(t, 6, n)
	require.NoError(t, a.Close())
	for _, want := range []string{"first", "second"} {
		got, err := b.ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = b.ReadFrame(100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the third frame was cut")
	require.ErrorIs(t, b.WriteFrames([][]byte{nil}), io.ErrClosedPipe)
}

// TryWriteBatch writes as much as fits.
func TestPipe_TryWriteBatch(t *testing.T) {
	a, b := wire.Pipe()
	w := a.(wire.TryWriter)
	data := stream(string(make([]byte, 100<<10)))
	n, err := w.TryWriteBatch(data)
	require.NoError(t, err)
	require.Equal(t, 64<<10, n)
	n, err = w.TryWriteBatch(data[n:])
	require.NoError(t, err)
	require.Zero(t, n)
	b.Close()
	_, err = w.TryWriteBatch(data)
	require.ErrorIs(t, err, io.ErrClosedPipe)
	a.Close()
	_, err = w.TryWriteBatch(data)
	require.ErrorIs(t, err, net.ErrClosed)
}

// A Pipe keeps bytes in order across the end of its ring.
func TestPipe_RingOrder(t *testing.T) {
	a, b := wire.Pipe()
	frame := make([]byte, 9973)
	write := func(i int) {
		for j := range frame {
			frame[j] = byte(i + j)
		}
		require.NoError(t, a.WriteFrames([][]byte{frame}))
	}
	for i := range 5 { // there is always something in the ring, so that it is never reset
		write(i)
	}
	for i := range 100 {
		got, err := b.ReadFrame(1 << 20)
		require.NoError(t, err)
		want := make([]byte, len(frame))
		for j := range want {
			want[j] = byte(i + j)
		}
		require.True(t, bytes.Equal(want, got), "frame %d", i)
		write(i + 5)
	}
}
