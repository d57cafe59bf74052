package classic_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// The vectors were made by running the original: valid messages, what its decoder does with bad
// ones, and what its encoder refuses.
const (
	validFile   = "testdata/vectors-simple.json"
	invalidFile = "testdata/vectors-simple-negative.json"
	refusedFile = "testdata/encoder-limits-simple.json"
)

type vector struct {
	Name, What, Outcome, Generate string
	Hex, Sha256                   hexBytes
	Length, Consumed, Left        int
	Message                       message
	Exception                     string
}

// message is any message as the vectors write it. Fields that one does not have are nil.
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

// value is a value as the vectors write it.
type value struct {
	Type, Schema, Bits string
	Value              json.RawMessage
	Repeat             int
}

// repeated is a list of values, or one value many times.
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

// goValue returns what an any receives for v.
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

// encode returns the bytes of values, one behind the other.
func encode(t testing.TB, values ...any) (b []byte) {
	var err error
	for _, v := range values {
		b, err = classic.Values.Append(b, v)
		require.NoError(t, err)
	}
	return b
}

// message returns the message that m describes.
func (m message) message(t testing.TB) classic.Message {
	pipe := uint16(m.Pipe)
	switch m.Kind {
	case "open":
		values := goValues(t, *m.Params)
		return &classic.Open{Pipe: pipe, Priority: m.Priority, Function: uint16(m.Function), Count: uint16(len(values)), Params: append([]byte{}, encode(t, values...)...)}
	case "close":
		if m.Success {
			return &classic.Close{Pipe: pipe, Result: encode(t, m.Result.goValue(t))}
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

func TestEveryValidVectorIsWrittenAndReadAsTheOriginalDoes(t *testing.T) {
	for _, v := range readVectors(t, validFile) {
		t.Run(v.Name, func(t *testing.T) {
			want := v.Message.message(t)
			b, err := want.AppendTo([]byte("before"))
			require.NoError(t, err)
			b = b[len("before"):]
			if v.Hex != nil {
				require.Equal(t, hex.EncodeToString(v.Hex), hex.EncodeToString(b))
			} else {
				sum := sha256.Sum256(b)
				require.Len(t, b, v.Length)
				require.Equal(t, []byte(v.Sha256), sum[:])
			}

			got, n, err := classic.Parse(append(bytes.Clone(b), "behind"...), classic.MaxMessage)
			require.NoError(t, err)
			require.Equal(t, len(b), n)
			require.Equal(t, want, got)
			for n := range b {
				if n > 64 && n < len(b)-64 {
					continue // enough of the long ones
				}
				_, _, err := classic.Parse(b[:n], classic.MaxMessage)
				require.ErrorIs(t, err, classic.ErrIncomplete, "cut after %d bytes", n)
			}
			requireValuesSurvive(t, got)
		})
	}
}

// requireValuesSurvive decodes the values of m as any, and compares what they are encoded as.
func requireValuesSurvive(t testing.TB, m classic.Message) {
	switch m := m.(type) {
	case *classic.Open:
		var p classic.Params
		joined := classic.JoinParams(nil, m)
		require.NoError(t, classic.Values.Decode(joined, &p))
		again, err := classic.Values.Append(nil, &p)
		require.NoError(t, err)
		require.Equal(t, joined, again)
		count, params, err := classic.SplitParams(again)
		require.NoError(t, err)
		require.Equal(t, m.Count, count)
		require.Equal(t, m.Params, params)
	case *classic.Close:
		if m.Abort == nil {
			var v any
			require.NoError(t, classic.Values.Decode(m.Result, &v))
			require.Equal(t, m.Result, encode(t, v))
		}
	}
}

// bytes returns the input that an invalid vector describes, such as "2a51 + 3 x 00".
func (v vector) bytes(t testing.TB) (b []byte) {
	if v.Generate == "" {
		return v.Hex
	}
	for part := range strings.SplitSeq(v.Generate, " + ") {
		times := 1
		if count, what, ok := strings.Cut(part, " x "); ok {
			var err error
			times, err = strconv.Atoi(count)
			require.NoError(t, err)
			part = what
		}
		one, err := hex.DecodeString(part)
		require.NoError(t, err)
		b = append(b, bytes.Repeat(one, times)...)
	}
	require.Len(t, b, v.Length)
	sum := sha256.Sum256(b)
	require.Equal(t, []byte(v.Sha256), sum[:])
	return b
}

func TestEveryInvalidVectorIsReadAsTheOriginalDoes(t *testing.T) {
	const most = 1 << 20 // the original's decoder has no limit
	for _, v := range readVectors(t, invalidFile) {
		t.Run(v.Name, func(t *testing.T) {
			data := v.bytes(t)
			m, n, err := classic.Parse(data, most)
			switch {
			case v.Outcome == "need_more":
				require.ErrorIs(t, err, classic.ErrIncomplete)
			case v.Exception == "java.lang.StackOverflowError":
				require.NoError(t, err, "here nothing depends on the depth but the decoding of the value")
				var p classic.Params
				require.ErrorIs(t, classic.Values.Decode(classic.JoinParams(nil, m.(*classic.Open)), &p), codec.ErrTooLarge)
			case v.Outcome == "exception":
				require.ErrorIs(t, err, codec.ErrProtocol)
			default:
				require.Equal(t, "accepted", v.Outcome)
				require.NoError(t, err)
				require.Equal(t, v.Consumed, n)
				require.Equal(t, v.Left, len(data)-n)
				v.Message.requireLike(t, m)
			}
		})
	}
}

// requireLike compares what the original read with m, as far as the vector says it, and by value:
// the bytes need not be those that would be written.
func (m message) requireLike(t testing.TB, got classic.Message) {
	switch got := got.(type) {
	case *classic.Open:
		require.Equal(t, "open", m.Kind)
		if m.Params != nil {
			var p classic.Params
			require.NoError(t, classic.Values.Decode(classic.JoinParams(nil, got), &p))
			require.Equal(t, encode(t, goValues(t, *m.Params)...), encode(t, p...))
		}
	case *classic.Block:
		require.Equal(t, "block", m.Kind)
		if m.Payload != nil {
			require.Equal(t, m.message(t), got)
		}
	case *classic.Control:
		require.Equal(t, "control", m.Kind)
		if m.Data != nil {
			require.Equal(t, m.message(t), got)
		}
	default:
		require.Equal(t, m.message(t), got)
	}
}

func TestWhatTheOriginalRefusesToWriteIsRefused(t *testing.T) {
	open := func(values ...any) func() error {
		return func() error {
			b, err := classic.Values.Append(nil, classic.Params(values))
			if err != nil {
				return err
			}
			count, params, err := classic.SplitParams(b)
			require.NoError(t, err)
			_, err = (&classic.Open{Pipe: 1, Function: 1, Count: count, Params: params}).AppendTo(nil)
			return err
		}
	}
	write := func(m classic.Message) func() error {
		return func() error {
			_, err := m.AppendTo(nil)
			return err
		}
	}
	cases := map[string]func() error{
		"construct/open/pipe-0":   write(&classic.Open{}),
		"construct/close/pipe-0":  write(&classic.Close{}),
		"construct/block/pipe-0":  write(&classic.Block{}),
		"construct/block/61440":   write(&classic.Block{Pipe: 1, Payload: make([]byte, 61440)}),
		"encode/65507":            open(strings.Repeat("x", 65496)),
		"encode/65508":            open(strings.Repeat("x", 65497)),
		"encode/string-65535":     open(strings.Repeat("x", 65535)),
		"encode/string-65536":     open(strings.Repeat("x", 65536)),
		"encode/binary-65536":     open(make([]byte, 65536)),
		"encode/list-65536":       open(make([]any, 65536)),
		"encode/params-65536":     open(make([]any, 65536)...),
		"encode/struct-256":       open(classic.Struct{Fields: make([]any, 256)}),
		"encode/unsupported-type": open(make(chan int)),
		"encode/bigint":           open(uint64(math.MaxUint64)),

		"construct/block/negative-loss": write(&classic.Block{Pipe: 1, Loss: 0xff}),
		"encode/control-data-65503":     write(&classic.Control{Code: 'Q', Data: make([]byte, 65503)}),
		"encode/control-data-65504":     write(&classic.Control{Code: 'Q', Data: make([]byte, 65504)}),
		"encode/lone-surrogate":         open("\xed\xa0\x80"), // as near as Go comes
		"construct/open/null-params":    nil,                  // no parameters, here
		"construct/abort/null-message":  nil,                  // a Go string is never null
		"construct/block/null-payload":  nil,                  // an empty one
		"construct/block/overrun":       nil,                  // a slice knows its end
		"construct/control/null-data":   nil,                  // an empty one
		// a fault of the original, which this does not have
		"encode/ensureCapacity-bug": nil,
	}
	for _, v := range readVectors(t, refusedFile) {
		f, ok := cases[v.Name]
		require.True(t, ok, v.Name)
		if f == nil {
			continue
		}
		if err := f(); v.Outcome == "accepted" {
			require.NoError(t, err, v.Name)
		} else {
			require.Error(t, err, v.Name)
			var mismatch *codec.TypeError
			require.True(t, errors.Is(err, codec.ErrTooLarge) || errors.Is(err, codec.ErrProtocol) || errors.As(err, &mismatch), "%s: %v", v.Name, err)
		}
	}
}
