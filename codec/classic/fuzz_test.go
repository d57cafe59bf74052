package classic_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

func addVectors(f *testing.F) {
	for _, form := range codecs {
		for _, v := range readVectors(f, validFiles[form]) {
			f.Add(uint8(form), []byte(v.Hex))
		}
	}
	for _, v := range readVectors(f, invalidFile) {
		f.Add(uint8(classic.Simple), []byte(v.Hex))
	}
	for _, h := range hostile {
		f.Add(uint8(classic.MessagePack), []byte(h.bytes))
	}
}

// The decoder splits any stream into the same messages, independent of the sizes of its pieces, and
// each message is encoded again as the same bytes.
func FuzzDecoder(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		form := codecs[int(which)%len(codecs)]
		const limit = 4096
		m, n, err := form.Parse(data, limit)
		d := classic.Decoder{Codec: form}
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
		again, err := m.AppendTo(nil, form)
		require.NoError(t, err)
		third, _, err := form.Parse(again, limit)
		require.NoError(t, err)
		require.Equal(t, m, third)
		if form == classic.Simple && !lenient(data[:n]) {
			require.Equal(t, data[:n], again)
		}
	})
}

// lenient reports whether the encoding of the message b may differ from b: a message with text that
// may be invalid UTF-8, or a status with more than a loss rate.
func lenient(b []byte) bool { return b[0] == ')' && b[3] == 2 || b[0] == '#' && b[3] > 0x80 }

// Decoding of any bytes stays within bounds, and a value decoded into an any is encoded as the same
// bytes, except for texts and repeated keys.
func FuzzValues(f *testing.F) {
	for _, form := range codecs {
		for _, v := range readVectors(f, validFiles[form]) {
			m, _, _ := form.Parse(v.Hex, 1<<20)
			switch m := m.(type) {
			case *classic.Open:
				f.Add(uint8(form), form.JoinParams(nil, m))
			case *classic.Close:
				f.Add(uint8(form), m.Result)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		form := codecs[int(which)%len(codecs)]
		for _, to := range []any{
			new(string), new([]any), new([]byte), new(map[any]any), new(map[string]int), new(pair), new(nested), new(classic.Struct), new(classic.Params), new(float32),
		} {
			form.Decode(data, to)
		}
		var v any
		if err := form.Decode(data, &v); err != nil {
			return
		}
		again, err := form.Append(nil, v)
		require.NoError(t, err)
		// The length prefix of a text may grow by two bytes.
		require.LessOrEqual(t, len(again), 5*len(data), "a replaced byte becomes three")
		var w any
		require.NoError(t, form.Decode(again, &w))
		third, err := form.Append(nil, w)
		require.NoError(t, err)
		require.Equal(t, again, third)
		if form == classic.Simple && !bytes.ContainsAny(data, "\x0b\x21\x22") { // no text, no map
			require.Equal(t, data, again)
		}
	})
}
