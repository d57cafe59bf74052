package classic_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
)

// The vectors record the errors of the original's decoder and encoder only for its SimpleCodec.
const (
	invalidFile = "testdata/vectors-simple-negative.json"
	refusedFile = "testdata/encoder-limits-simple.json"
)

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

// Every invalid vector is read as by the original.
func TestVectorInvalid_Read(t *testing.T) {
	const form = classic.Simple
	const most = 1 << 20 // the original's decoder has no limit
	for _, v := range readVectors(t, invalidFile) {
		t.Run(v.Name, func(t *testing.T) {
			data := v.bytes(t)
			m, n, err := form.Parse(data, most)
			switch {
			case v.Outcome == "need_more":
				require.ErrorIs(t, err, classic.ErrIncomplete)
			case v.Exception == "java.lang.StackOverflowError":
				require.NoError(t, err, "here nothing depends on the depth but the decoding of the value")
				var p classic.Params
				require.ErrorIs(t, form.Decode(form.JoinParams(nil, m.(*classic.Open)), &p), codec.ErrTooLarge)
			case v.Outcome == "exception":
				require.ErrorIs(t, err, codec.ErrProtocol)
			default:
				require.Equal(t, "accepted", v.Outcome)
				require.NoError(t, err)
				require.Equal(t, v.Consumed, n)
				require.Equal(t, v.Left, len(data)-n)
				v.Message.requireLike(t, form, m)
			}
		})
	}
}

// requireLike compares got with m, which the original has read, as far as the vector describes it.
// requireLike compares values: the bytes may differ from the encoding.
func (m message) requireLike(t testing.TB, form classic.Codec, got classic.Message) {
	switch got := got.(type) {
	case *classic.Open:
		require.Equal(t, "open", m.Kind)
		if m.Params != nil {
			var p classic.Params
			require.NoError(t, form.Decode(form.JoinParams(nil, got), &p))
			require.Equal(t, encode(t, form, goValues(t, *m.Params)...), encode(t, form, p...))
		}
	case *classic.Block:
		require.Equal(t, "block", m.Kind)
		if m.Payload != nil {
			require.Equal(t, m.message(t, form), got)
		}
	case *classic.Control:
		require.Equal(t, "control", m.Kind)
		if m.Data != nil {
			require.Equal(t, m.message(t, form), got)
		}
	default:
		require.Equal(t, m.message(t, form), got)
	}
}

// A value that the original refuses to write is refused.
func TestVectorUnwritable_Refused(t *testing.T) {
	const form = classic.Simple
	open := func(values ...any) func() error {
		return func() error {
			b, err := form.Append(nil, classic.Params(values))
			if err != nil {
				return err
			}
			count, params, err := form.SplitParams(b)
			require.NoError(t, err)
			_, err = (&classic.Open{Pipe: 1, Function: 1, Count: count, Params: params}).AppendTo(nil, form)
			return err
		}
	}
	write := func(m classic.Message) func() error {
		return func() error {
			_, err := m.AppendTo(nil, form)
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
		"encode/lone-surrogate":         nil, // refused, for the original makes another text of it
		"construct/open/null-params":    nil, // no parameters, here
		"construct/abort/null-message":  nil, // a Go string is never null
		"construct/block/null-payload":  nil, // an empty one
		"construct/block/overrun":       nil, // a slice knows its end
		"construct/control/null-data":   nil, // an empty one
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
