package wire_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/wire"
)

// A large frame that is alone in its memory is transferred to its reader.
func TestKeep_LargeFrame(t *testing.T) {
	frame := func(n int) string { return string(bytes.Repeat([]byte{byte(n)}, n)) }
	for _, c := range []struct {
		name  string
		sizes []int // of the frames; the last one is asked for
		want  bool
	}{
		{"a small frame", []int{100}, false},
		{"64 KiB and a head", []int{64<<10 + 20}, true},
		{"several of them", []int{64<<10 + 20, 64<<10 + 20, 64<<10 + 20}, true},
		{"behind small ones", []int{100, 10, 64 << 10}, true},
		{"smaller than the one before", []int{100 << 10, 30 << 10}, true},
		{"a little less than a buffer", []int{30 << 10}, true},
		{"too little for a buffer", []int{25 << 10}, false},
		{"the largest there are buffers for", []int{4 << 20}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var frames []string
			for _, n := range c.sizes {
				frames = append(frames, frame(n))
			}
			w := wire.FromConn(script{Reader: bytes.NewReader(stream(append(frames, frame(32<<10))...))})
			var got []byte
			for range frames {
				f, err := w.ReadFrame(8 << 20)
				require.NoError(t, err)
				got = f
			}
			mem := (*buffer.Buffer)(w.(wire.Buffered).Keep())
			require.Equal(t, c.want, mem != nil)
			require.Nil(t, (*buffer.Buffer)(w.(wire.Buffered).Keep()), "once")
			next, err := w.ReadFrame(8 << 20)
			require.NoError(t, err)
			require.Equal(t, frame(32<<10), string(next))
			if c.want {
				require.Equal(t, frames[len(frames)-1], string(got), "no other goroutine writes there")
				require.LessOrEqual(t, 16*len(mem.B), 17*(len(got)+512))
			}
		})
	}
}

// TestKeep_StaysUnchanged reads frames of all sizes, keeps those it may, releases some, and checks
// the remaining ones later.
func TestKeep_StaysUnchanged(t *testing.T) {
	type kept struct {
		frame []byte
		sum   uint64
		mem   *buffer.Buffer
	}
	sum := func(b []byte) (s uint64) {
		for _, c := range b {
			s = s*31 + uint64(c)
		}
		return s
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	const frames = 2_000
	sums := make(chan uint64, frames)
	go func() { // ends when it has written all
		c, err := ln.Accept()
		if err != nil {
			return
		}
		w := wire.FromConn(c)
		defer w.Close()
		rnd := rand.New(rand.NewPCG(1, 2))
		for range frames {
			f := make([]byte, rnd.IntN(1+1<<rnd.IntN(18)))
			for i := range f {
				f[i] = byte(rnd.Uint32())
			}
			sums <- sum(f)
			if w.WriteFrames([][]byte{f}) != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	w := wire.FromConn(c)
	defer w.Close()
	var held []kept
	count := 0
	look := func(k kept) {
		require.Equal(t, k.sum, sum(k.frame))
		k.mem.Release()
	}
	for {
		f, err := w.ReadFrame(1 << 20)
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		k := kept{f, <-sums, nil}
		require.Equal(t, k.sum, sum(f))
		if k.mem = (*buffer.Buffer)(w.(wire.Buffered).Keep()); k.mem != nil {
			held = append(held, k)
			count++
		}
		if len(held) > 20 {
			look(held[0])
			held = held[1:]
		}
	}
	for _, k := range held {
		look(k)
	}
	require.Positive(t, count)
	require.Empty(t, sums, "all have come")
}

// A vector arrives as one stream.
func TestWriteVector_OneStream(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	accepted := make(chan net.Conn, 1)
	go func() { // ends with the one connection
		if c, err := ln.Accept(); err == nil {
			accepted <- c
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	w, r := wire.FromConn(c), wire.FromConn(<-accepted)
	defer w.Close()
	defer r.Close()
	want := []string{"small", string(bytes.Repeat([]byte("large"), 20_000)), "", "end"}
	data := stream(want...)
	v, ok := w.(wire.VectorWriter)
	require.Equal(t, runtime.GOOS != "windows", ok)
	if !ok {
		return
	}
	written := make(chan error, 1)
	go func() { // ends when all is written
		pieces := [][]byte{data[:3], nil, data[3:20], data[20:50_000], data[50_000:50_001], data[50_001:]}
		written <- v.WriteVector(pieces)
	}()
	for _, f := range want {
		got, err := r.ReadFrame(1 << 20)
		require.NoError(t, err)
		require.Equal(t, f, string(got))
	}
	require.NoError(t, <-written)
	_, sent := w.(wire.Meter).Progress()
	require.EqualValues(t, len(data), sent)
	require.NoError(t, w.Close())
	require.ErrorIs(t, v.WriteVector([][]byte{data}), net.ErrClosed)
}
