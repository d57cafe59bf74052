package classic_test

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// Each test covers one quirk of the original's MessagePackCodec and has the name of the quirk.

// packed returns the MessagePack encoding of v in hexadecimal digits.
func packed(t *testing.T, v any) string {
	b, err := classic.MessagePack.Append(nil, v)
	require.NoError(t, err)
	return hex.EncodeToString(b)
}

// unpacked decodes MessagePack given in hexadecimal digits.
func unpacked(t *testing.T, digits string) (v any, err error) {
	b, err := hex.DecodeString(digits)
	require.NoError(t, err)
	return v, classic.MessagePack.Decode(b, &v)
}

// parsed parses a message given in hexadecimal digits.
func parsed(t *testing.T, digits string) (classic.Message, error) {
	b, err := hex.DecodeString(digits)
	require.NoError(t, err)
	m, _, err := classic.MessagePack.Parse(b, classic.MaxMessage)
	return m, err
}

// Counts are converted to signed numbers.
func TestMessagePack_Counts(t *testing.T) {
	require.Equal(t, "20d19c40", packed(t, make([]any, 40_000))[:8])
	require.Equal(t, "21d19c40", packed(t, make(classic.Map, 40_000))[:8])
	require.Equal(t, "20ff", packed(t, make([]any, 65_535))[:4])
	for fields, want := range map[int]string{127: "22a07f", 128: "22a0d080", 200: "22a0d0c8", 255: "22a0ff"} {
		require.Equal(t, want, packed(t, classic.Struct{Fields: make([]any, fields)})[:len(want)])
	}
	for _, v := range []any{make([]any, 40_000), make([]any, 65_535), classic.Struct{Fields: make([]any, 128)}, classic.Struct{Fields: make([]any, 255)}} {
		again, err := unpacked(t, packed(t, v))
		require.NoError(t, err)
		require.Equal(t, v, again)
	}
	open := &classic.Open{Pipe: 0x8000, Function: 0xffff, Count: 40_000, Params: make([]byte, 40_000)}
	b, err := open.AppendTo(nil, classic.MessagePack)
	require.NoError(t, err)
	require.Equal(t, "28d1800000ffd19c40", hex.EncodeToString(b[:9]))
	again, _, err := classic.MessagePack.Parse(b, classic.MaxMessage)
	require.NoError(t, err)
	require.Equal(t, open, again)
}

// The status of an EOF is signed.
func TestMessagePack_EOFStatus(t *testing.T) {
	b, err := (&classic.Block{Pipe: 1, EOF: true}).AppendTo(nil, classic.MessagePack)
	require.NoError(t, err)
	require.Equal(t, "2301d080", hex.EncodeToString(b))
	m, err := parsed(t, "2301e4a178") // neither EOF nor a loss rate
	require.NoError(t, err)
	require.Equal(t, &classic.Block{Pipe: 1, Loss: 100, Payload: []byte("x")}, m)
}

// Numbers beyond the signed range are refused.
func TestMessagePack_BeyondSigned(t *testing.T) {
	for name, digits := range map[string]string{
		"pipe 0x8000":      "28cd8000000a00",
		"EOF":              "2301cc80",
		"priority 200":     "2801ccc80a00",
		"function 40,000":  "280100cd9c4000",
		"40,000 params":    "2801000acd9c40",
		"control code 128": "2acc80a0",
		"abort code":       "290102ce80000000a0",
	} {
		_, err := parsed(t, digits)
		require.ErrorIs(t, err, codec.ErrProtocol, name)
		require.ErrorContains(t, err, "signed", name)
	}
	for name, digits := range map[string]string{
		"a list of 40,000":  "20cd9c40",
		"a map of 40,000":   "21cd9c40",
		"128 fields":        "22a0cc80",
		"an int8 of 128":    "03cc80",
		"an int16 of 32768": "04cd8000",
		"an int32 of 2^31":  "05ce80000000",
		"an int64 of 2^63":  "06cf8000000000000000",
		"half a uuid":       "0c00cfffffffffffffffff",
	} {
		_, err := unpacked(t, digits)
		require.ErrorIs(t, err, codec.ErrProtocol, name)
		require.ErrorContains(t, err, "does not fit", name)
	}
}

// Integers are written in the fewest bytes.
func TestMessagePack_FewestBytes(t *testing.T) {
	for want, n := range map[string]int64{
		"0600": 0, "067f": 127, "06cc80": 128, "06ccff": 255, "06cd0100": 256, "06cdffff": 65535, "06ce00010000": 65536, "06ceffffffff": math.MaxUint32,
		"06cf0000000100000000": math.MaxUint32 + 1, "06cf7fffffffffffffff": math.MaxInt64, "06ff": -1, "06e0": -32, "06d0df": -33, "06d080": -128, "06d1ff7f": -129,
		"06d18000": -32768, "06d2ffff7fff": -32769, "06d280000000": math.MinInt32, "06d3ffffffff7fffffff": math.MinInt32 - 1, "06d38000000000000000": math.MinInt64,
	} {
		require.Equal(t, want, packed(t, n))
	}
}

// Integers are read in any form that fits.
func TestMessagePack_AnyForm(t *testing.T) {
	for _, digits := range []string{"0305", "03cc05", "03cd0005", "03ce00000005", "03cf0000000000000005", "03d005", "03d10005", "03d200000005", "03d30000000000000005"} {
		v, err := unpacked(t, digits)
		require.NoError(t, err, digits)
		require.Equal(t, int8(5), v, digits)
	}
	v, err := unpacked(t, "20d10002"+"03d3ffffffffffffff80"+"04d0ff")
	require.NoError(t, err)
	require.Equal(t, []any{int8(-128), int16(-1)}, v)
}

// A tag is one byte.
func TestMessagePack_Tags(t *testing.T) {
	_, err := parsed(t, "cc2801000a00")
	require.ErrorContains(t, err, "unexpected message tag cc")
	_, err = unpacked(t, "d000")
	require.ErrorContains(t, err, "unexpected value tag d0")
	_, err = parsed(t, "2901c3") // the true of MessagePack
	require.ErrorContains(t, err, "unexpected boolean c3")
}

// The forms str8 and bin are never written.
func TestMessagePack_Str8Unwritten(t *testing.T) {
	for size, want := range map[int]string{0: "a0", 31: "bf", 32: "da0020", 128: "da0080", 255: "da00ff", 256: "da0100", 65_535: "daffff"} {
		require.Equal(t, "0b"+want, packed(t, string(make([]byte, size)))[:2+len(want)])
		require.Equal(t, "0a"+want, packed(t, make([]byte, size))[:2+len(want)])
	}
}

// The forms str8 and bin are read.
func TestMessagePack_Str8Read(t *testing.T) {
	for _, head := range []string{"a1", "d901", "da0001", "db00000001", "c401", "c50001", "c600000001"} {
		v, err := unpacked(t, "0b"+head+"78")
		require.NoError(t, err, head)
		require.Equal(t, "x", v, head)
		v, err = unpacked(t, "0a"+head+"78")
		require.NoError(t, err, head)
		require.Equal(t, []byte("x"), v, head)
	}
}

// Floating-point numbers are read in their own width.
func TestMessagePack_FloatWidth(t *testing.T) {
	require.Equal(t, "07ca3fc00000", packed(t, float32(1.5)))
	require.Equal(t, "08cb3ff8000000000000", packed(t, 1.5))
	for _, digits := range []string{"07cb3ff8000000000000", "08ca3fc00000", "0705", "0805"} {
		_, err := unpacked(t, digits)
		require.ErrorContains(t, err, "a float of", digits)
	}
}

// A uuid is two integers.
func TestMessagePack_UUID(t *testing.T) {
	for want, u := range map[string]classic.UUID{
		"0c0000":        {},
		"0c01cc80":      {7: 1, 15: 128},
		"0cffff":        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"0c00d0" + "80": {8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff, 12: 0xff, 13: 0xff, 14: 0xff, 15: 0x80},
	} {
		require.Equal(t, want, packed(t, u))
		v, err := unpacked(t, want)
		require.NoError(t, err)
		require.Equal(t, u, v)
	}
}

// Arrays and maps of MessagePack are not used.
func TestMessagePack_NoContainers(t *testing.T) {
	require.Equal(t, "2002"+"0301"+"0302", packed(t, []int8{1, 2}))
	require.Equal(t, "2101"+"0ba161"+"0301", packed(t, map[string]int8{"a": 1}))
	for _, digits := range []string{"209101", "20dc0001", "218101", "21de0001", "22a091"} {
		_, err := unpacked(t, digits)
		require.ErrorContains(t, err, "an integer was expected", digits)
	}
}

// A Sync has the same data in both codecs.
func TestMessagePack_Sync(t *testing.T) {
	s := classic.Sync{Version: 1, Node: classic.UUID{1}, Time: time.UnixMilli(1), Ping: 3, Timeout: 1800}
	require.Equal(t, s.AppendTo(nil, classic.Simple)[4:], s.AppendTo(nil, classic.MessagePack)[5:])
	require.Equal(t, "2a51da0032", hex.EncodeToString(s.AppendTo(nil, classic.MessagePack)[:5]))
}

// The first bytes identify the codec.
func TestDetect_FirstBytes(t *testing.T) {
	for _, form := range codecs {
		for _, v := range readVectors(t, validFiles[form]) {
			if len(v.Hex) == 0 || v.Message.Kind != "control" && v.Message.Pipe != 1 && v.Message.Pipe != -32768 {
				continue // no peer begins with such a pipe
			}
			if v.Name == "control/code-0x80" {
				continue // nor with an unknown code
			}
			got, err := classic.Detect(nil)
			for n := 1; n <= len(v.Hex) && err == classic.ErrIncomplete; n++ {
				got, err = classic.Detect(v.Hex[:n])
			}
			require.NoError(t, err, v.Name)
			require.Equal(t, form, got, v.Name)
		}
	}
	_, err := classic.Detect([]byte("GET"))
	require.ErrorIs(t, err, codec.ErrProtocol)
}
