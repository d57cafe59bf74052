package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// chunks returns data in pieces whose sizes are the bytes of cuts, cyclically.
type chunks struct {
	data, cuts []byte
	reads      int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := len(c.data)
	if len(c.cuts) > 0 {
		n = 1 + int(c.cuts[c.reads%len(c.cuts)])*64
		c.reads++
	}
	n = copy(p, c.data[:min(n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

// parse is the simplest implementation of a reader of frames.
func parse(data []byte, max int) (frames [][]byte, err error) {
	for {
		switch {
		case len(data) == 0:
			return frames, io.EOF
		case len(data) < 4:
			return frames, io.ErrUnexpectedEOF
		}
		n := uint64(binary.BigEndian.Uint32(data))
		switch {
		case n > uint64(max):
			return frames, wire.ErrFrameTooLarge
		case n > uint64(len(data)-4):
			return frames, io.ErrUnexpectedEOF
		}
		frames = append(frames, data[4:4+n])
		data = data[4+n:]
	}
}

// compare requires that a Wire reads the same frames as parse, for any division of the stream.
func compare(t *testing.T, data, cuts []byte, max int) {
	want, wantErr := parse(data, max)
	w := wire.FromConn(script{Reader: &chunks{data: data, cuts: cuts}})
	for i := 0; ; i++ {
		promised := w.(wire.Buffered).Buffered()
		got, err := w.ReadFrame(max)
		if err != nil {
			require.False(t, promised && !errors.Is(err, wire.ErrFrameTooLarge), "Buffered promised a frame, and there was %v", err)
			require.Len(t, want, i, "frames before the error %v", err)
			require.ErrorIs(t, err, wantErr)
			return
		}
		require.Less(t, i, len(want), "more frames than there are")
		require.True(t, bytes.Equal(want[i], got), "frame %d", i)
		require.Equal(t, len(got), cap(got), "a frame gives no access to what is behind it")
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(stream("one", "", "three"), []byte{}, uint16(100))
	f.Add(stream("one", "", "three"), []byte{0}, uint16(4))
	f.Add(append(stream("one"), 0, 0, 255), []byte{0, 1, 2}, uint16(100))
	f.Add([]byte{0, 0, 255, 255, 1}, []byte{0}, uint16(65535))
	f.Add(stream(string(make([]byte, 1100)), "x"), []byte{255, 3}, uint16(65535))
	f.Fuzz(func(t *testing.T, data, cuts []byte, limit uint16) {
		compare(t, data, cuts, int(limit))
		spent := weightest.AllocatedAtMost(1<<20, func() {
			w := wire.FromConn(script{Reader: &chunks{data: data, cuts: cuts}})
			for err := error(nil); err == nil; {
				_, err = w.ReadFrame(int(limit))
			}
		})
		require.Less(t, spent, 1<<20, "bytes allocated, for any announced length")
	})
}

// TestReadFrame_SimpleParser uses larger streams than the fuzz test.
func TestReadFrame_SimpleParser(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var frames []string
		for range r.IntN(30) {
			size := r.IntN(100)
			if r.IntN(3) == 0 {
				size = 1 << r.IntN(18)
			}
			frame := make([]byte, size)
			for i := range frame {
				frame[i] = byte(r.Uint32())
			}
			frames = append(frames, string(frame))
		}
		data, cuts := stream(frames...), make([]byte, r.IntN(20))
		for i := range cuts {
			cuts[i] = byte(r.Uint32())
		}
		compare(t, data[:len(data)-r.IntN(1+min(len(data), 3))], cuts, 1<<18-r.IntN(1<<17))
	}
}
