package codec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var meta = Meta{TTL: 1000, Loss: 1, Skipped: 2, Trace: make([]byte, 55), Key: make([]byte, 16), Stream: true, Window: 1 << 16}

func TestMessagesAreWrittenAndReadWithoutAllocation(t *testing.T) {
	var (
		buf     = make([]byte, 0, 1024)
		open    = Open{Pipe: 1 << 20, Function: 300, Priority: -3, Params: make([]byte, 64), Meta: meta}
		block   = Block{Pipe: 1 << 20, Payload: make([]byte, 64), Meta: meta}
		result  = Close{Pipe: 1 << 20, Result: make([]byte, 64)}
		abort   = Close{Pipe: 1 << 20, Abort: ErrExpired.Withf("too late")}
		frames  = [][]byte{open.AppendTo(nil), block.AppendTo(nil), result.AppendTo(nil)}
		unknown = withUnknownMeta(&open)
	)
	for name, f := range map[string]func(){
		"write Open":   func() { buf = open.AppendTo(buf[:0]) },
		"write Block":  func() { buf = block.AppendTo(buf[:0]) },
		"write Close":  func() { buf = result.AppendTo(buf[:0]) },
		"write Abort":  func() { buf = abort.AppendTo(buf[:0]) },
		"write Ping":   func() { buf = Ping{N: 1 << 40}.AppendTo(buf[:0]) },
		"write Credit": func() { buf = Credit{Pipe: 4, Limit: 1 << 40}.AppendTo(buf[:0]) },
		"write Ask":    func() { buf = Ask{Pipe: 4, Sent: 1 << 40, Total: 1 << 41}.AppendTo(buf[:0]) },
		"write Allow":  func() { buf = Allow{Pipe: 4, Total: 1 << 40}.AppendTo(buf[:0]) },
		"read Open":    func() { _, _ = ParseOpen(frames[0]) },
		"read unknown": func() { _, _ = ParseOpen(unknown) },
		"read Block":   func() { _, _ = ParseBlock(frames[1]) },
		"read Close":   func() { _, _ = ParseClose(frames[2]) },
		"read a type":  func() { _, _ = TypeOf(frames[0]) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

func TestPlainValuesAreEncodedWithoutAllocation(t *testing.T) {
	s, b, n := "a string", []byte("bytes"), 1<<30
	buf := make([]byte, 0, 64)
	for _, v := range []any{s, &s, b, &b, true, n, &n, int64(n), uint64(n), 1.5} {
		require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = CBOR.Append(buf[:0], v) }), "%T", v)
	}
}

func TestAStructNeedsNoAllocationButForItsStrings(t *testing.T) {
	type field struct {
		Kind   int32  `cbor:"1,keyasint,omitempty"`
		Name   string `cbor:"2,keyasint,omitempty"`
		Packed bool   `cbor:"3,keyasint,omitempty"`
	}
	v, buf := field{9, "shipping_address", true}, make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = CBOR.Append(buf[:0], &v) }))
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { _ = CBOR.Decode(buf, &v) }))
}

func TestPlainValuesAreDecodedWithNoAllocationButTheirOwn(t *testing.T) {
	var (
		s string
		b []byte
		n int
		u uint64
		f float64
		k bool
	)
	for _, tt := range []struct {
		value, into any
		want        float64
	}{
		{"a string", &s, 1}, {[]byte("bytes"), &b, 1}, {1 << 30, &n, 0}, {uint64(1 << 63), &u, 0}, {1.5, &f, 0}, {true, &k, 0},
	} {
		data, err := CBOR.Append(nil, tt.value)
		require.NoError(t, err)
		require.Equal(t, tt.want, testing.AllocsPerRun(100, func() { _ = CBOR.Decode(data, tt.into) }), "%T", tt.into)
	}
}
