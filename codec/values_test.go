package codec

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

type order struct {
	ID    int            `json:"id" cbor:"id"`
	Names []string       `json:"names" cbor:"names"`
	Stock map[string]int `json:"stock" cbor:"stock"`
	At    time.Time      `json:"at" cbor:"at"`
}

// Values arrive as they were sent.
func TestValues_RoundTrip(t *testing.T) {
	at := time.Date(2024, 2, 29, 12, 30, 1, 123456789, time.UTC)
	for _, c := range []Values{CBOR, JSON} {
		t.Run(c.Name(), func(t *testing.T) {
			want := order{ID: 7, Names: []string{"<a>", "ß"}, Stock: map[string]int{"x": 1}, At: at}
			data, err := c.Append([]byte("before"), want)
			require.NoError(t, err)
			require.Equal(t, "before", string(data[:6]))

			var got order
			require.NoError(t, c.Decode(data[6:], &got))
			require.Equal(t, want, got)
		})
	}
}

// Codec names fit into the handshake.
func TestName_FitsHandshake(t *testing.T) {
	require.Equal(t, []string{"cbor", "json", "raw"}, []string{CBOR.Name(), JSON.Name(), Raw.Name()})
}

// JSON does not escape HTML characters.
func TestJSON_Plain(t *testing.T) {
	data, err := JSON.Append(nil, "<a & b>")
	require.NoError(t, err)
	require.Equal(t, `"<a & b>"`, string(data), "neither escaped nor followed by a newline")
}

// Decode keeps no part of the data.
func TestDecode_KeepsNoData(t *testing.T) {
	type parts struct {
		B []byte
		S string
		C cbor.RawMessage
		J json.RawMessage
	}
	for _, c := range []Values{CBOR, JSON} {
		want := parts{B: []byte("bytes"), S: "string", C: cbor.RawMessage{0x01}, J: json.RawMessage("1")}
		data, err := c.Append(nil, want)
		require.NoError(t, err)
		var got parts
		require.NoError(t, c.Decode(data, &got))
		clear(data)
		require.Equal(t, want, got, c.Name())
	}
	for _, c := range []Values{CBOR, JSON, Raw} {
		data, err := c.Append(nil, []byte("bytes"))
		require.NoError(t, err)
		var got []byte
		require.NoError(t, c.Decode(data, &got))
		clear(data)
		require.Equal(t, "bytes", string(got), c.Name())
	}
}

// A value of another type is a TypeError.
func TestDecode_OtherType(t *testing.T) {
	var (
		s string
		n int8
		o order
		i int
		k bool
	)
	for _, tt := range []struct {
		codec     Values
		data      string
		into      any
		want, got string
	}{
		{CBOR, "\x81\x01", &s, "a text string", "an array"},
		{CBOR, "\x61a", &i, "an integer", "a text string"},
		{CBOR, "\x01", &k, "a bool", "an integer"},
		{CBOR, "\x19\x01\x2c", &n, "an integer of 8 bits", "300"},
		{CBOR, "\x1b\xff\xff\xff\xff\xff\xff\xff\xff", &i, "an integer of 64 bits", "18446744073709551615"},
		{CBOR, "\xa1\x62id\x61a", &o, "an integer", "a text string"},
		{JSON, `"a"`, &i, "a number", "a string"},
		{JSON, `[1]`, &s, "a string", "an array"},
		{JSON, `300`, &n, "an integer of 8 bits", "300"},
		{Raw, "a", &i, "something else", "raw bytes"},
		{Raw, "a", (*string)(nil), "something else", "raw bytes"},
		{Raw, "a", nil, "something else", "raw bytes"},
	} {
		t.Run(tt.codec.Name()+" "+tt.got+" into "+tt.want, func(t *testing.T) {
			err := tt.codec.Decode([]byte(tt.data), tt.into)
			var te *TypeError
			require.ErrorAs(t, err, &te)
			require.Equal(t, tt.want, te.Want)
			require.Equal(t, tt.got, te.Got)
			require.ErrorContains(t, err, tt.want+" was expected, and "+tt.got+" came")
			require.Error(t, errors.Unwrap(err), "what Go says")
		})
	}
}

// Malformed data is no TypeError.
func TestDecode_Malformed(t *testing.T) {
	for _, tt := range []struct {
		codec Values
		data  string
		want  string
	}{
		{CBOR, "", "malformed CBOR"},
		{CBOR, "\x62a", "malformed CBOR"},
		{CBOR, "\x01\x01", "malformed CBOR"},
		{CBOR, "\xff", "malformed CBOR"},
		{CBOR, strings.Repeat("\x81", 33) + "\x01", "malformed CBOR"},
		{CBOR, "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", "malformed CBOR"},
		{CBOR, "\xa2\x01\x01\x01\x01", "duplicate map key"},
		{CBOR, "\x62\xc3\x28", "invalid UTF-8"},
		{JSON, "", "malformed JSON"},
		{JSON, "{", "malformed JSON"},
		{JSON, "1 2", "malformed JSON"},
	} {
		var v any
		err := tt.codec.Decode([]byte(tt.data), &v)
		require.ErrorContains(t, err, tt.want, "%q", tt.data)
		var te *TypeError
		require.False(t, errors.As(err, &te), "%q", tt.data)
	}
}

// Decode into a value other than a pointer is an error.
func TestDecode_NoPointer(t *testing.T) {
	for _, c := range []Values{CBOR, JSON, Raw} {
		data, err := c.Append(nil, "a")
		require.NoError(t, err)
		for _, v := range []any{nil, "string", 1, (*string)(nil), (*int)(nil), (*[]byte)(nil), (*order)(nil)} {
			require.Error(t, c.Decode(data, v), "%s into %T", c.Name(), v)
		}
	}
}

// After an error, Append returns dst unchanged.
func TestAppend_AfterError(t *testing.T) {
	for _, c := range []Values{CBOR, JSON, Raw} {
		for _, v := range []any{make(chan int), []any{1, func() {}}} {
			data, err := c.Append([]byte("before"), v)
			require.Equal(t, "before", string(data), c.Name())
			var te *TypeError
			require.ErrorAs(t, err, &te, c.Name())
			require.NotContains(t, te.Text(), "chan")
			require.Regexp(t, `chan int|\[\]interface \{\}`, te.Err.Error())
		}
	}
	_, err := JSON.Append(nil, math.NaN())
	require.ErrorContains(t, err, "could not be encoded as JSON: float64")
	_, err = CBOR.Append(nil, failing{})
	require.ErrorIs(t, err, errFailing)
	_, err = Raw.Append(nil, failing{})
	require.ErrorIs(t, err, errFailing)
	require.ErrorIs(t, Raw.Decode(nil, &failing{}), errFailing)
}

var errFailing = errors.New("no")

// failing has an encoding of its own that always fails.
type failing struct{}

func (failing) MarshalBinary() ([]byte, error)  { return nil, errFailing }
func (*failing) UnmarshalBinary(_ []byte) error { return errFailing }

// Raw sends bytes unchanged.
func TestRaw_SendsBytes(t *testing.T) {
	s, b := "bytes", []byte("bytes")
	at := time.Unix(1, 2).UTC()
	binary, err := at.MarshalBinary()
	require.NoError(t, err)
	for want, list := range map[string][]any{"bytes": {s, &s, b, &b}, string(binary): {at, &at}, "": {"", []byte(nil)}} {
		for _, v := range list {
			data, err := Raw.Append([]byte("before "), v)
			require.NoError(t, err)
			require.Equal(t, "before "+want, string(data), "%T", v)
		}
	}

	var (
		gotS string
		gotB []byte
		gotT time.Time
	)
	require.NoError(t, Raw.Decode(b, &gotS))
	require.NoError(t, Raw.Decode(b, &gotB))
	require.NoError(t, Raw.Decode(binary, &gotT))
	require.Equal(t, s, gotS)
	require.Equal(t, b, gotB)
	require.Equal(t, at, gotT)
	require.NoError(t, Raw.Decode(nil, &gotB))
	require.Equal(t, []byte{}, gotB, "no bytes are bytes")
}

// CBOR decodes values beyond the default limits of its library.
func TestCBOR_BeyondDefaults(t *testing.T) {
	want := make([]int, 200_000)
	data, err := CBOR.Append(nil, want)
	require.NoError(t, err)
	var got []int
	require.NoError(t, CBOR.Decode(data, &got))
	require.Equal(t, len(want), len(got))
}

// CBOR matches fields only by their exact names.
func TestCBOR_ExactNames(t *testing.T) {
	type point struct {
		X int `cbor:"x"`
		Y int
	}
	encoded := func(v any) []byte {
		b, err := CBOR.Append(nil, v)
		require.NoError(t, err)
		return b
	}
	var p point
	require.NoError(t, CBOR.Decode(encoded(map[string]any{"x": 1, "X": "another", "y": "a third", "Y": 2}), &p))
	require.Equal(t, point{1, 2}, p)
	err := CBOR.Decode(encoded(map[string]any{"X": "another", "x": "wrong"}), &p)
	require.ErrorContains(t, err, "at .x: an integer was expected, and a text string came")
}
