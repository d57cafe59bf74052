package classic_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

func addVectors(f *testing.F) {
	for _, file := range []string{validFile, invalidFile} {
		for _, v := range readVectors(f, file) {
			f.Add([]byte(v.Hex))
		}
	}
}

// A stream of any bytes is cut into the same messages, however it arrives, and each message is
// written as it was read.
func FuzzDecoder(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 4096
		m, n, err := classic.Parse(data, limit)
		var d classic.Decoder
		for i := range data { // byte by byte
			again, size, err2 := d.Next(data[:i+1], limit)
			if err2 == classic.ErrIncomplete {
				require.True(t, err != nil || i+1 < n, "the message was whole")
				continue
			}
			require.Equal(t, err, err2)
			require.Equal(t, n, size)
			require.Equal(t, m, again)
			break
		}
		if err != nil {
			require.True(t, err == classic.ErrIncomplete || errorIs(err, codec.ErrProtocol) || errorIs(err, codec.ErrTooLarge), "%v", err)
			return
		}
		require.LessOrEqual(t, n, min(len(data), limit))
		again, err := m.AppendTo(nil)
		require.NoError(t, err)
		third, _, err := classic.Parse(again, limit)
		require.NoError(t, err)
		require.Equal(t, m, third)
		if !lenient(data[:n]) {
			require.Equal(t, data[:n], again)
		}
	})
}

// lenient reports whether b is a message that may be written in other bytes: those with text that
// may not be UTF-8, and a status with more than a loss rate.
func lenient(b []byte) bool { return b[0] == ')' && b[3] == 2 || b[0] == '#' && b[3] > 0x80 }

// Values of any bytes are decoded within bounds, and what an any receives is encoded as the same
// bytes again, but for texts and repeated keys.
func FuzzValues(f *testing.F) {
	for _, v := range readVectors(f, validFile) {
		if m, _, err := classic.Parse(v.Hex, 1<<20); err == nil {
			switch m := m.(type) {
			case *classic.Open:
				f.Add(classic.JoinParams(nil, m))
			case *classic.Close:
				f.Add(m.Result)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, to := range []any{
			new(string), new([]any), new([]byte), new(map[any]any), new(map[string]int), new(pair), new(nested), new(classic.Struct), new(classic.Params), new(float32),
		} {
			classic.Values.Decode(data, to)
		}
		var v any
		if err := classic.Values.Decode(data, &v); err != nil {
			return
		}
		again, err := classic.Values.Append(nil, v)
		require.NoError(t, err)
		require.LessOrEqual(t, len(again), 3*len(data), "a replaced byte becomes three")
		var w any
		require.NoError(t, classic.Values.Decode(again, &w))
		third, err := classic.Values.Append(nil, w)
		require.NoError(t, err)
		require.Equal(t, again, third)
		if !bytes.ContainsAny(data, "\x0b\x21\x22") { // no text, no map
			require.Equal(t, data, again)
		}
	})
}
