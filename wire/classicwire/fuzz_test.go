package classicwire_test

import (
	"bytes"
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// recorded is a connection to a peer that has already sent everything, and reads nothing.
type recorded struct{ io.Reader }

func (recorded) Write(b []byte) (int, error) { return len(b), nil }
func (recorded) Close() error                { return nil }

// FuzzPeer feeds arbitrary bytes of a peer. The session receives only frames of protocol 1 that
// break none of its rules.
func FuzzPeer(f *testing.F) {
	for _, m := range []string{
		msg(open(1, 10, "x"), block(1, "y"), eof(1), eof(1), result(1, nil)), msg(open(1, 10), open(1, 10), block(2, "z"), abort(3, "w"), control('C')),
		msg(open(0x8000, 10), result(0x8000, 1), open(0x8000, 10), control('Q')), "2301ff0000", goodbye,
	} {
		b, err := hex.DecodeString(m)
		require.NoError(f, err)
		f.Add(false, b)
		f.Add(true, recodeAll(f, classic.Simple, classic.MessagePack, b))
	}
	f.Fuzz(func(t *testing.T, isPacked bool, said []byte) {
		form := classic.Simple
		if isPacked {
			form = classic.MessagePack
		}
		sync, err := hex.DecodeString(compact(clientSync))
		require.NoError(t, err)
		w := classicwire.Server(recorded{io.MultiReader(bytes.NewReader(recodeAll(t, classic.Simple, form, sync)), bytes.NewReader(said))})
		defer w.Close()
		require.IsType(t, message.Sync{}, readControl(t, w))
		r := rules{open: map[uint64]bool{}}
		for {
			frame, err := w.ReadFrame(1 << 16)
			if err != nil {
				break
			}
			r.check(t, frame)
		}
	})
}

// rules checks the rules of protocol 1 that concern more than one frame, for the peer that
// connected.
type rules struct {
	open map[uint64]bool // whether the pipe may have Blocks
	next uint64
}

func (r *rules) check(t *testing.T, frame []byte) {
	kind, err := message.TypeOf(frame)
	require.NoError(t, err)
	switch kind {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		require.NoError(t, err)
		require.Equal(t, r.next, m.Pipe, "ids are even, and grow")
		r.next += 2
		r.open[m.Pipe] = true
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		require.NoError(t, err)
		require.True(t, r.open[m.Pipe], "a Block for a pipe that takes some")
		r.open[m.Pipe] = !m.End
	case message.CloseType:
		m, err := message.ParseClose(frame)
		require.NoError(t, err)
		require.Contains(t, r.open, m.Pipe)
		delete(r.open, m.Pipe)
	default:
		_, err := message.ParseControl(frame)
		require.NoError(t, err)
	}
}
