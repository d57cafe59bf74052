package wiretest_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestFaulty_Suite(t *testing.T) {
	for name, under := range map[string]func() (a, b wire.Wire){
		"over a Pipe": wire.Pipe,
		"over the five methods": func() (a, b wire.Wire) {
			a, b = wire.Pipe()
			return struct{ wire.Wire }{a}, struct{ wire.Wire }{b}
		},
	} {
		t.Run(name, func(t *testing.T) {
			skipRace(t)
			wiretest.RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
				a, b = under()
				return wiretest.Faulty(a, wiretest.Faults{}), wiretest.Faulty(b, wiretest.Faults{})
			})
		})
	}
	t.Run("at one end", func(t *testing.T) {
		wiretest.RunInBubbles(t, func(*testing.T) (a, b wire.Wire) {
			a, b = wire.Pipe()
			return a, wiretest.Faulty(b, wiretest.Faults{})
		})
	})
}

// wires runs test under synctest over a Wire with one faulty end.
func wires(t *testing.T, faults wiretest.Faults, test func(t *testing.T, f *wiretest.Wire, peer wire.Wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, peer := wire.Pipe()
		f := wiretest.Faulty(a, faults)
		defer peer.Close()
		defer f.Close()
		test(t, f, peer)
	})
}

// receive reads all frames until an error.
func receive(w wire.Wire) (frames []string, err error) {
	for {
		f, err := w.ReadFrame(100)
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(f))
	}
}

var hello = [][]byte{[]byte("hello"), []byte("stars")} // 4+5+4+5 bytes

// Both ends of a faulty Wire see the end at the right position.
func TestFaulty_EndPosition(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults wiretest.Direction
		frames []string
		here   error // for reading at the faulty end, of what the other end sends
		there  error // for reading at the other end
	}{
		{"cut between frames", wiretest.Direction{CutAfter: 9}, []string{"hello"}, syscall.ECONNRESET, io.EOF},
		{"cut inside a frame", wiretest.Direction{CutAfter: 15}, []string{"hello"}, syscall.ECONNRESET, io.EOF},
		{"truncated between frames", wiretest.Direction{TruncateAfter: 9}, []string{"hello"}, io.EOF, io.EOF},
		{"truncated inside a frame", wiretest.Direction{TruncateAfter: 15}, []string{"hello"}, io.ErrUnexpectedEOF, io.EOF},
		{"truncated inside a length", wiretest.Direction{TruncateAfter: 3}, nil, io.ErrUnexpectedEOF, io.EOF},
		{"corrupt in its first length", wiretest.Direction{CorruptAt: 1}, nil, wire.ErrFrameTooLarge, nil},
	} {
		t.Run(test.name+"/in", func(t *testing.T) {
			wires(t, wiretest.Faults{Seed: 1, In: test.faults}, func(t *testing.T, f *wiretest.Wire, peer wire.Wire) {
				require.NoError(t, peer.WriteFrames(hello))
				frames, err := receive(f)
				require.Equal(t, test.frames, frames)
				require.ErrorIs(t, err, test.here)
			})
		})
		if test.there == nil {
			continue // what the length becomes decides
		}
		t.Run(test.name+"/out", func(t *testing.T) {
			wires(t, wiretest.Faults{Seed: 1, Out: test.faults}, func(t *testing.T, f *wiretest.Wire, peer wire.Wire) {
				require.Error(t, f.WriteFrames(hello))
				frames, err := receive(peer)
				require.Equal(t, test.frames, frames)
				require.ErrorIs(t, err, test.there)
			})
		})
	}
}

// A length that was corrupted beyond the limit ends writing.
func TestFaulty_CorruptLength(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		wires(t, wiretest.Faults{Seed: seed, Out: wiretest.Direction{CorruptAt: 1}}, func(t *testing.T, f *wiretest.Wire, peer wire.Wire) {
			length := binary.BigEndian.AppendUint32(nil, 5)
			if err := f.WriteBatch(append(length, "hello"...)); err != nil {
				require.ErrorIs(t, err, wire.ErrFrameTooLarge)
				found++
			}
		})
	}
	require.Greater(t, found, 10, "of eight bits seven make a length of more than 16 MiB")
}

// A frame is corrupted in place.
func TestFaulty_CorruptFrame(t *testing.T) {
	wires(t, wiretest.Faults{Seed: 1, Out: wiretest.Direction{CorruptAt: 5}}, func(t *testing.T, f *wiretest.Wire, peer wire.Wire) {
		require.NoError(t, f.WriteFrames(hello))
		first, err := peer.ReadFrame(100)
		require.NoError(t, err)
		require.NotEqual(t, "hello", string(first))
		require.Equal(t, "ello", string(first[1:]))
		second, err := peer.ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, "stars", string(second))
	})
}

// A faulty Wire is controlled while it runs.
func TestFaulty_Control(t *testing.T) {
	wires(t, wiretest.Faults{Out: wiretest.Direction{Delay: time.Millisecond}}, func(t *testing.T, f *wiretest.Wire, peer wire.Wire) {
		require.NoError(t, f.WriteFrames(hello))
		for _, want := range hello {
			frame, err := peer.ReadFrame(100)
			require.NoError(t, err)
			require.Equal(t, want, frame)
		}
		synctest.Wait() // delayed bytes count when they were sent, which the peer may see before
		received, sent := f.Progress()
		require.EqualValues(t, []uint64{0, 18}, []uint64{received, sent})

		f.Stall()
		require.NoError(t, f.WriteFrames(hello[:1]))
		require.NoError(t, peer.WriteFrames(hello[1:]))
		require.NoError(t, f.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := f.ReadFrame(100)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.False(t, f.Buffered())
		f.Heal()
		require.NoError(t, f.SetReadDeadline(time.Time{}))
		frame, err := f.ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, "stars", string(frame))
		frame, err = peer.ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, "hello", string(frame))
		synctest.Wait()
		received, sent = f.Progress()
		require.EqualValues(t, []uint64{9, 27}, []uint64{received, sent})

		f.HalfOpen()
		require.NoError(t, f.WriteFrames(hello))
		require.NoError(t, peer.WriteFrames(hello))
		require.NoError(t, f.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = f.ReadFrame(100)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		require.NoError(t, f.SetReadDeadline(time.Time{}))
		f.Cut()
		_, err = f.ReadFrame(100)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = peer.ReadFrame(100)
		require.Equal(t, io.EOF, err, "nothing has come through since it was half-open")
		require.NoError(t, f.Close())
		_, err = f.ReadFrame(100)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
