package classic_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// The original generated the vectors.
var validFiles = map[classic.Codec]string{
	classic.Simple:      "testdata/vectors-simple.json",
	classic.MessagePack: "testdata/vectors-messagepack.json",
}

type vector struct {
	Name, What, Outcome, Generate string
	Hex, Sha256                   hexBytes
	Length, Consumed, Left        int
	Message                       message
	Exception                     string
}

// message is any message in the form of the vectors. A field that a message does not have is nil.
type message struct {
	Kind     string
	Pipe     int16
	Priority int8
	Function int16
	Params   *repeated
	Success  bool
	Result   *value
	Abort    *classic.Abort
	EOF      bool
	Loss     uint8
	Payload  *hexBytes
	Length   int `json:"payload_length"`
	Code     int
	Data     *hexBytes
}

// value is a value in the form of the vectors.
type value struct {
	Type, Schema, Bits string
	Value              json.RawMessage
	Repeat             int
}

// repeated is a list of values, or one value with a count.
type repeated []value

func (r *repeated) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]value)(r))
	}
	var one struct {
		Repeat int
		Value  value
	}
	err := json.Unmarshal(b, &one)
	for range one.Repeat {
		*r = append(*r, one.Value)
	}
	return err
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func readVectors(t testing.TB, file string) (list []vector) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &list))
	require.NotEmpty(t, list)
	return list
}

// goValue returns the result of decoding v into an any.
func (v value) goValue(t testing.TB) any {
	into := func(to any) {
		require.NoError(t, json.Unmarshal(v.Value, to))
	}
	var text string
	if v.Type == "int64" || v.Type == "binary" || v.Type == "uuid" || v.Type == "string" {
		into(&text)
	}
	switch v.Type {
	case "null":
		return nil
	case "bool":
		return string(v.Value) == "true"
	case "int8", "int16", "int32":
		var n int32
		into(&n)
		return map[string]any{"int8": int8(n), "int16": int16(n), "int32": n}[v.Type]
	case "int64":
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	case "float32":
		b, err := hex.DecodeString(v.Bits)
		require.NoError(t, err)
		return math.Float32frombits(binary.BigEndian.Uint32(b))
	case "float64":
		b, err := hex.DecodeString(v.Bits)
		require.NoError(t, err)
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case "binary":
		b, err := hex.DecodeString(text)
		require.NoError(t, err)
		return b
	case "string":
		return strings.Repeat(text, max(v.Repeat, 1))
	case "uuid":
		u, err := classic.ParseUUID(text)
		require.NoError(t, err)
		return u
	}
	return v.collection(t)
}

func (v value) collection(t testing.TB) any {
	if v.Type == "map" {
		var entries [][2]value
		require.NoError(t, json.Unmarshal(v.Value, &entries))
		m := classic.Map{}
		for _, e := range entries {
			m = append(m, classic.Entry{Key: e[0].goValue(t), Value: e[1].goValue(t)})
		}
		return m
	}
	var inside repeated
	require.NoError(t, json.Unmarshal(v.Value, &inside))
	if v.Type == "struct" {
		return classic.Struct{Schema: v.Schema, Fields: goValues(t, inside)}
	}
	require.Equal(t, "list", v.Type)
	return goValues(t, inside)
}

func goValues(t testing.TB, list []value) []any {
	values := []any{}
	for _, v := range list {
		values = append(values, v.goValue(t))
	}
	return values
}

// encode returns the encodings of values, concatenated.
func encode(t testing.TB, form classic.Codec, values ...any) (b []byte) {
	var err error
	for _, v := range values {
		b, err = form.Append(b, v)
		require.NoError(t, err)
	}
	return b
}

// message returns the message that m describes.
func (m message) message(t testing.TB, form classic.Codec) classic.Message {
	pipe := uint16(m.Pipe)
	switch m.Kind {
	case "open":
		values := goValues(t, *m.Params)
		return &classic.Open{Pipe: pipe, Priority: m.Priority, Function: uint16(m.Function), Count: uint16(len(values)), Params: append([]byte{}, encode(t, form, values...)...)}
	case "close":
		if m.Success {
			return &classic.Close{Pipe: pipe, Result: encode(t, form, m.Result.goValue(t))}
		}
		return &classic.Close{Pipe: pipe, Abort: m.Abort}
	case "block":
		if m.EOF {
			return &classic.Block{Pipe: pipe, EOF: true}
		}
		payload := make([]byte, m.Length)
		for i := range payload {
			payload[i] = byte(i)
		}
		if m.Payload != nil {
			payload = *m.Payload
		}
		return &classic.Block{Pipe: pipe, Loss: m.Loss, Payload: payload}
	}
	require.Equal(t, "control", m.Kind)
	return &classic.Control{Code: byte(m.Code), Data: *m.Data}
}

// Every valid vector is written and read as by the original.
func TestVectorValid_RoundTrip(t *testing.T) {
	eachCodec(t, everyValidVectorIsWrittenAndRead)
}

func everyValidVectorIsWrittenAndRead(t *testing.T, form classic.Codec) {
	for _, v := range readVectors(t, validFiles[form]) {
		t.Run(v.Name, func(t *testing.T) {
			want := v.Message.message(t, form)
			b, err := want.AppendTo([]byte("before"), form)
			require.NoError(t, err)
			b = b[len("before"):]
			if v.Hex != nil {
				require.Equal(t, hex.EncodeToString(v.Hex), hex.EncodeToString(b))
			} else {
				sum := sha256.Sum256(b)
				require.Len(t, b, v.Length)
				require.Equal(t, []byte(v.Sha256), sum[:])
			}

			got, n, err := form.Parse(append(bytes.Clone(b), "behind"...), classic.MaxMessage)
			require.NoError(t, err)
			require.Equal(t, len(b), n)
			require.Equal(t, want, got)
			for n := range b {
				if n > 64 && n < len(b)-64 {
					continue // enough of the long ones
				}
				_, _, err := form.Parse(b[:n], classic.MaxMessage)
				require.ErrorIs(t, err, classic.ErrIncomplete, "cut after %d bytes", n)
			}
			requireValuesSurvive(t, form, got)
		})
	}
}

// requireValuesSurvive decodes the values of m into any, encodes them, and compares the bytes.
func requireValuesSurvive(t testing.TB, form classic.Codec, m classic.Message) {
	switch m := m.(type) {
	case *classic.Open:
		var p classic.Params
		joined := form.JoinParams(nil, m)
		require.NoError(t, form.Decode(joined, &p))
		again, err := form.Append(nil, &p)
		require.NoError(t, err)
		require.Equal(t, joined, again)
		count, params, err := form.SplitParams(again)
		require.NoError(t, err)
		require.Equal(t, m.Count, count)
		require.Equal(t, m.Params, params)
	case *classic.Close:
		if m.Abort == nil {
			var v any
			require.NoError(t, form.Decode(m.Result, &v))
			require.Equal(t, m.Result, encode(t, form, v))
		}
	}
}
