package codec

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// number returns a CBOR bignum of n bytes, preceded by tags.
func number(n int, tags string) []byte {
	b := binary.BigEndian.AppendUint32([]byte(tags+"\x5a"), uint32(n))
	return append(b, bytes.Repeat([]byte{0xab}, n)...)
}

// TestAttackCBOR_LongNumber requires that a long bignum in CBOR is not converted to decimal digits.
// The conversion would take a minute: its time grows with the square of the length.
func TestAttackCBOR_LongNumber(t *testing.T) {
	const size = 8 << 20
	type fields struct{ N int }
	for name, data := range map[string][]byte{
		"positive":               number(size, "\xc2"),
		"negative":               number(size, "\xc3"),
		"behind another tag":     number(size, "\xd8\x64\xc2"),
		"in a longer form":       number(size, "\xda\x00\x00\x00\x02"),
		"in pieces":              append(append([]byte("\xc2\x5f"), number(size, "")...), 0xff),
		"in a list":              append([]byte("\x81"), number(size, "\xc2")...),
		"as a key":               append(append([]byte("\xa1"), number(size, "\xc2")...), 0x01),
		"in a field":             append([]byte("\xa1\x61N"), number(size, "\xc2")...),
		"in a field behind null": append([]byte("\xa2\xf6\xf6\x61n"), number(size, "\xc2")...),
	} {
		for _, v := range []any{
			new(int), new(uint8), new(*int), new(string), new(float64), new(bool), new(time.Time), new(struct{}),
			new([]int), new([][]string), new(map[int]string), new(fields), new([1]float32), new(map[string]*fields),
		} {
			if err := CBOR.Decode(data, v); err != nil {
				require.Less(t, len(err.Error()), 500, "%s as %T: digits", name, v)
			}
		}
	}
}

// A long number is accepted by a type that holds it.
func TestCBOR_LongNumberThatFits(t *testing.T) {
	const size = 100 << 10
	data := number(size, "\xc2")
	var whole big.Int
	require.NoError(t, CBOR.Decode(data, &whole))
	require.Equal(t, 8*size, whole.BitLen())
	var loose any
	require.NoError(t, CBOR.Decode(data, &loose))
	require.Equal(t, whole, loose)
	var list []*big.Int
	require.NoError(t, CBOR.Decode(append([]byte("\x81"), data...), &list))
	require.Equal(t, &whole, list[0])
	var raw []byte
	require.NoError(t, CBOR.Decode(data, &raw))
	require.Len(t, raw, size)
	var other struct{ N int }
	skipped := append([]byte("\xa2\x61M"), append(data, "\x61N\xc2\x41\x05"...)...)
	require.NoError(t, CBOR.Decode(skipped, &other))
	require.Equal(t, 5, other.N)
	mismatch := &TypeError{}
	require.ErrorAs(t, CBOR.Decode(data, new(int)), &mismatch)
	require.Equal(t, "an integer of more than 256 bytes", mismatch.Got)
}

// Tags count for a type that decodes itself.
func TestCBOR_TagsOfOwnDecoder(t *testing.T) {
	data := bytes.Repeat([]byte("\xd8\x64"), 20)
	require.GreaterOrEqual(t, CBOR.(Weigher).Weigh(append(data, 1), reflect.TypeFor[own](), 1<<20), len(data))
}
