package classic_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

func errorIs(err, target error) bool { return errors.Is(err, target) }

// A message above the limit is refused as soon as its size is known.
func TestDecoder_TooLarge(t *testing.T) {
	const form = classic.Simple
	for name, b := range map[string]string{
		"announced by a Control": "\x2a\x51\x10\x00",
		"announced by a Block":   "\x23\x00\x01\x00\x10\x00",
		"announced by an Abort":  "\x29\x00\x01\x02\x00\x00\x00\x01\x10\x00",
		"too many parameters":    "\x28\x00\x01\x00\x00\x0a\x10\x00",
		"too many elements":      "\x28\x00\x01\x00\x00\x0a\x00\x01\x20\x10\x00",
		"too many entries":       "\x28\x00\x01\x00\x00\x0a\x00\x01\x21\x08\x00",
		"too many, nested":       "\x28\x00\x01\x00\x00\x0a\x00\x01\x20\x0f\x00\x20\x0f\x00",
	} {
		_, _, err := form.Parse([]byte(b), 4096)
		require.ErrorIs(t, err, codec.ErrTooLarge, name)
		_, _, err = form.Parse([]byte(b), 1<<20)
		require.ErrorIs(t, err, classic.ErrIncomplete, name)
	}
	m := bytes.Repeat([]byte{0}, 100)
	exact, err := (&classic.Block{Pipe: 1, Payload: m}).AppendTo(nil, form)
	require.NoError(t, err)
	_, _, err = form.Parse(exact, len(exact))
	require.NoError(t, err)
	_, _, err = form.Parse(exact, len(exact)-1)
	require.EqualError(t, err, "classic: message of 106 bytes or more exceeds the limit of 105")
}

// Decoding allocates at most a few times the size of the input.
func TestDecoder_AllocsBounded(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		deep := "\x00" // each map is the second key of the one around it
		for range 1000 {
			deep = counted(form, mapping, 2, "") + "\x00\x00" + deep + "\x00"
		}
		for name, b := range map[string]string{
			"a list of nulls":          counted(form, list, 0xff00, "\x00"),
			"empty lists":              counted(form, list, 0x5000, counted(form, list, 0, "")),
			"empty maps":               counted(form, list, 0x5000, counted(form, mapping, 0, "")),
			"a map of nulls":           counted(form, mapping, 0x7f00, "\x00\x00"),
			"maps as keys of maps":     deep,
			"a list that is not there": counted(form, list, 0xffff, ""),
			"a map that is not there":  counted(form, mapping, 0xffff, ""),
		} {
			data, err := []byte(b), error(nil)
			var v any
			most := 100*len(b) + 16<<10
			grown := weightest.AllocatedAtMost(most, func() { err = form.Decode(data, &v) })
			require.LessOrEqual(t, grown, most, "%s: %v", name, err)
		}
	})
}

// The decoder continues where it stopped: when a message of 60,000 values arrives byte by byte, the
// decoder does not count the values again with every byte.
func TestDecoder_Continues(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		b, err := (&classic.Open{Pipe: 1, Count: 60_000, Params: make([]byte, 60_000)}).AppendTo(nil, form)
		require.NoError(t, err)
		d := classic.Decoder{Codec: form}
		broken := bytes.Clone(b)
		for i := range b {
			_, n, err := d.Next(broken[:i+1], classic.MaxMessage)
			if i+1 == len(b) {
				require.NoError(t, err)
				require.Equal(t, len(b), n)
				return
			}
			if err != classic.ErrIncomplete {
				t.Fatal(i, err)
			}
			if i > 16 { // behind the head
				broken[i] = 0xff // bytes before the position are not read again
			}
		}
	})
}

// The decoder reads all vectors as one stream, in pieces of seven bytes.
func TestDecoder_Sequence(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		var stream []byte
		var want []string
		for _, v := range readVectors(t, validFiles[form]) {
			if v.Hex != nil {
				stream = append(stream, v.Hex...)
				want = append(want, v.Name)
			}
		}
		d := classic.Decoder{Codec: form}
		begin := 0
		for end := 0; len(want) > 0; {
			m, n, err := d.Next(stream[begin:end], classic.MaxMessage)
			if err == classic.ErrIncomplete && end < len(stream) {
				end = min(end+7, len(stream))
				continue
			}
			require.NoError(t, err, want[0])
			b, err := m.AppendTo(nil, form)
			require.NoError(t, err, want[0])
			require.Equal(t, stream[begin:begin+n], b, want[0])
			begin += n
			want = want[1:]
		}
		require.Equal(t, len(stream), begin)
	})
}
