package classic_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

func errorIs(err, target error) bool { return errors.Is(err, target) }

func TestAMessageTooLongIsRefusedAsSoonAsThatIsClear(t *testing.T) {
	for name, b := range map[string]string{
		"announced by a Control": "\x2a\x51\x10\x00",
		"announced by a Block":   "\x23\x00\x01\x00\x10\x00",
		"announced by an Abort":  "\x29\x00\x01\x02\x00\x00\x00\x01\x10\x00",
		"too many parameters":    "\x28\x00\x01\x00\x00\x0a\x10\x00",
		"too many elements":      "\x28\x00\x01\x00\x00\x0a\x00\x01\x20\x10\x00",
		"too many entries":       "\x28\x00\x01\x00\x00\x0a\x00\x01\x21\x08\x00",
		"too many, nested":       "\x28\x00\x01\x00\x00\x0a\x00\x01\x20\x0f\x00\x20\x0f\x00",
	} {
		_, _, err := classic.Parse([]byte(b), 4096)
		require.ErrorIs(t, err, codec.ErrTooLarge, name)
		_, _, err = classic.Parse([]byte(b), 1<<20)
		require.ErrorIs(t, err, classic.ErrIncomplete, name)
	}
	m := bytes.Repeat([]byte{0}, 100)
	exact, err := (&classic.Block{Pipe: 1, Payload: m}).AppendTo(nil)
	require.NoError(t, err)
	_, _, err = classic.Parse(exact, len(exact))
	require.NoError(t, err)
	_, _, err = classic.Parse(exact, len(exact)-1)
	require.EqualError(t, err, "classic: message of 106 bytes or more exceeds the limit of 105")
}

func TestDecodingAllocatesNoMoreThanAFewTimesTheInput(t *testing.T) {
	// keys that are maps
	deepMap := append(bytes.Repeat([]byte("\x21\x00\x02\x00\x00"), 1000), bytes.Repeat([]byte{0}, 2001)...)
	for i := range 1000 {
		// each the second key of the one around it
		copy(deepMap[5*i:], "\x21\x00\x02\x00\x00")
	}
	for name, b := range map[string][]byte{
		"a list of nulls":          append([]byte{0x20, 0xff, 0x00}, make([]byte, 0xff00)...),
		"empty lists":              append([]byte{0x20, 0x50, 0x00}, bytes.Repeat([]byte{0x20, 0, 0}, 0x5000)...),
		"empty maps":               append([]byte{0x20, 0x50, 0x00}, bytes.Repeat([]byte{0x21, 0, 0}, 0x5000)...),
		"a map of nulls":           append([]byte{0x21, 0x7f, 0x00}, make([]byte, 2*0x7f00)...),
		"maps as keys of maps":     deepMap,
		"a list that is not there": {0x20, 0xff, 0xff},
		"a map that is not there":  {0x21, 0xff, 0xff},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v any
		err := classic.Values.Decode(b, &v)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(100*len(b)+16<<10), "%s: %v", name, err)
	}
}

// A message that arrives byte by byte is looked at once: its 60,000 values are not counted again
// with every byte.
func TestADecoderGoesOnWhereItWas(t *testing.T) {
	b, err := (&classic.Open{Pipe: 1, Count: 60_000, Params: make([]byte, 60_000)}).AppendTo(nil)
	require.NoError(t, err)
	var d classic.Decoder
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
		if i > 10 {
			broken[i] = 0xff // what has been looked at is not looked at again
		}
	}
}
