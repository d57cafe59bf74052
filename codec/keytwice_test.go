package codec

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// objectWith returns a JSON object with n keys, followed by more.
func objectWith(n int, more string) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"key %d":{"a":[]},`, i)
	}
	return b.String() + more + "}"
}

// An object with a duplicate key is refused.
func TestJSON_DuplicateKey(t *testing.T) {
	for data, key := range map[string]string{
		`{"a":1,"a":2}`:                                    `"a"`,
		`{"a":1,"b":{"a":1},"a":1}`:                        `"a"`,
		`[{"a":{"b":[{"":1,"":2}]}}]`:                      `""`,
		`{"a":1,"\u0061":2}`:                               `"\u0061"`,
		`{"\"":1 , "\u0022" : 2}`:                          `"\u0022"`,
		`{"ß":1,"\u00df":2}`:                               `"\u00df"`,
		objectWith(1000, `"key 500":1`):                    `"key 500"`,
		objectWith(few+1, `"key 0":1`):                     `"key 0"`,
		objectWith(2, strings.Repeat(`"x":1,`, 9)+`"x":1`): `"x"`,
		`{"` + strings.Repeat("x", 1000) + `":1,"` + strings.Repeat("x", 1000) + `":1}`: `"xxx`,
	} {
		for _, into := range []any{new(any), new(struct{ A any }), new(map[string]any), new([]any)} {
			err := JSON.Decode([]byte(data), into)
			require.ErrorContains(t, err, "malformed JSON: an object has the key "+key)
			require.ErrorContains(t, err, " twice")
			require.Less(t, len(err.Error()), 300)
		}
	}
}

// Keys that differ are accepted.
func TestJSON_DifferentKeys(t *testing.T) {
	for _, data := range []string{
		`{"a":1,"A":2}`, `{"a":{"a":1},"b":{"a":1}}`, `[{"a":1},{"a":2}]`, `{"a":"a","b":["a","a","a"]}`, `{"a":"\"a\":1,\"a\":1"}`,
		objectWith(1000, `"key":1`), `{"a\\":1,"a":2}`, `{}`, `{"a": "\\" , "b":1}`,
	} {
		var v any
		require.NoError(t, JSON.Decode([]byte(data), &v), data)
	}
}

// Malformed keys are malformed.
func TestJSON_MalformedKeys(t *testing.T) {
	for _, data := range []string{`{"a":1,"a`, `{"a":1,"a\`, `}{"a":1`, `]`, `{"a"`, `{"\u00":1,"\u00":2}`, strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 20_000)} {
		var v any
		require.ErrorContains(t, JSON.Decode([]byte(data), &v), "malformed JSON", "%.40s", data)
	}
}

// The check of keys does not allocate.
func TestJSON_KeysAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes pools forget")
	}
	data := []byte(`{"id":7,"names":["a","b"],"stock":{"x":1,"y":2},"at":{"a":{"b":{}}}}`)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = keyTwice(data) }))
}

// TestAttackJSON_ManyKeys requires that the estimate includes the memory of many keys.
func TestAttackJSON_ManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("{")
	for i := range 200_000 {
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	data := []byte(b.String() + `"":0}`)
	weighed := JSON.(Weigher).Weigh(data, reflect.TypeFor[struct{}](), math.MaxInt)
	require.LessOrEqual(t, weightest.AllocatedAtMost(4*weighed, func() { _, _ = keyTwice(data) }), 4*weighed)
	require.LessOrEqual(t, weighed, 40*200_001)
}

// nans returns a CBOR map whose keys are NaN.
func nans(keys ...string) string {
	b := string([]byte{0xa0 | byte(len(keys))})
	for _, k := range keys {
		b += k + "\x01"
	}
	return b
}

// A map with the same NaN twice is refused.
func TestCBOR_DuplicateNaN(t *testing.T) {
	const half, double = "\xf9\x7e\x00", "\xfb\x7f\xf8\x00\x00\x00\x00\x00\x01"
	const single, signalling = "\xfa\xff\xc0\x00\x00", "\xfb\x7f\xf0\x00\x00\x00\x00\x00\x01"
	type pair struct{ A, B any }
	for _, data := range []string{
		nans(half, half), nans(half, "\x05", double, double), nans(single, half, single), nans(signalling, signalling),
		"\x81" + nans(half, half), "\xa1\x61A" + nans(half, half), "\xbf" + half + "\x01" + half + "\x01\xff", "\xd8\x64" + nans(half, half),
	} {
		for _, into := range []any{new(any), new(pair), new(map[float64]any), new(map[any]any), new([]any), new([]map[float64]int)} {
			if err := CBOR.Decode([]byte(data), into); err == nil || !strings.Contains(err.Error(), "a map has a key twice") {
				require.Fail(t, "it was taken", "%x as %T: %v", data, into, err)
			}
		}
	}
	for _, data := range []string{nans(half, double, single, signalling), nans("\xf9\x7c\x00"), "\x82" + half + half, "\x82" + nans(half) + nans(half)} {
		var v any
		require.NoError(t, CBOR.Decode([]byte(data), &v), "%x", data)
	}
	var arrays map[[1]float64]int
	require.ErrorContains(t, CBOR.Decode([]byte(nans("\x81"+half, "\x81"+half)), &arrays), "a map has a key twice")
}

// TestAttackCBOR_NaNKeys requires that decoding a CBOR map with many different NaN keys takes no
// more memory than the estimate.
func TestAttackCBOR_NaNKeys(t *testing.T) {
	const n = 1 << 16
	data := []byte{0xba, 0, 1, 0, 0}
	for i := range n {
		data = append(data, 0xfa, 0x7f, 0x80|byte(i>>16), byte(i>>8), byte(i)|1<<7, 0x01)
		data[len(data)-5] |= 0x40
	}
	as := reflect.TypeFor[any]()
	weighed := CBOR.(Weigher).Weigh(data, as, math.MaxInt)
	grown := weightest.GrownAtMost(weighed, func() any { var v any; _ = CBOR.Decode(data, &v); return v })
	require.LessOrEqual(t, grown, weighed)
	same := append([]byte{0xba, 0, 1, 0, 0}, strings.Repeat("\xf9\x7e\x00\x01", n)...)
	require.LessOrEqual(t, weightest.AllocatedAtMost(n, func() { var v any; _ = CBOR.Decode(same, &v) }), n, "it ends at the second")
}

// TestCBOR_NaNInsideKeys requires that each key that contains NaN is weighed like a NaN key.
func TestCBOR_NaNInsideKeys(t *testing.T) {
	const n = 1000
	for before, as := range map[string]reflect.Type{
		"": reflect.TypeFor[map[float32]int](), "\xd8\x64": reflect.TypeFor[map[float32]int](), "\x81": reflect.TypeFor[map[[1]float32]int](),
		"\x81\x81": reflect.TypeFor[map[[1][1]float32]int](), "\xa1\x61A": reflect.TypeFor[map[struct{ A float32 }]int](), "\x80": nil,
	} {
		data := []byte{0xb9, n >> 8, n & 0xff}
		for i := range n {
			data = append(append(data, before...), 0xfa, 0x7f, 0xc0, byte(i>>8), byte(i), 0x01)
		}
		if as == nil { // none of these
			data, as = []byte(strings.ReplaceAll(string(data), "\x80\xfa\x7f\xc0", "\x81\xfa\x00\x00")), reflect.TypeFor[map[[1]float32]int]()
			require.Less(t, CBOR.(Weigher).Weigh(data, as, math.MaxInt), n*nanKey)
			continue
		}
		v := reflect.New(as)
		require.NoError(t, CBOR.Decode(data, v.Interface()), "%q", before)
		require.Equal(t, n, v.Elem().Len())
		require.GreaterOrEqual(t, CBOR.(Weigher).Weigh(data, as, math.MaxInt), n*nanKey, "%q", before)
	}
}

// A received text that is not UTF-8 is refused.
func TestCBOR_InvalidUTF8(t *testing.T) {
	for _, into := range []any{new(string), new(any)} {
		require.ErrorContains(t, CBOR.Decode([]byte("\x62a\xff"), into), "malformed CBOR: a text is not UTF-8")
	}
	require.ErrorContains(t, CBOR.Decode([]byte("\xa1\x61N\x62a\xff"), new(struct{ N string })), "malformed CBOR: a text is not UTF-8")
}
