package message

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// TypeOf reads only the first element.
func TestTypeOf_FirstElement(t *testing.T) {
	for typ, frame := range map[Type][]byte{
		ControlType: {cborhead.Array | 1, 0}, OpenType: {cborhead.Array | 1, 1}, BlockType: {cborhead.Array | 2, 2, 0xff}, CloseType: {cborhead.Array | 3, 3, 0xff, 0xff},
		PartType: {cborhead.Array | 2, 4, 0xff},
	} {
		got, err := TypeOf(frame)
		require.NoError(t, err, typ)
		require.Equal(t, typ, got)
	}
	for _, frame := range [][]byte{nil, {cborhead.Array}, {cborhead.Array | 1, 5}, {cborhead.Array | 1, cborhead.Text}, {cborhead.Map | 1, 1}, {cborhead.Array | 24, 1, 0}, {0x9f, 1, 0xff}} {
		_, err := TypeOf(frame)
		require.ErrorIs(t, err, codec.ErrProtocol, "%x", frame)
	}
}

// A Type has the name of its message.
func TestType_Names(t *testing.T) {
	require.Equal(t, "Control Open Block Close Part Type(5)",
		strings.Join([]string{ControlType.String(), OpenType.String(), BlockType.String(), CloseType.String(), PartType.String(), Type(5).String()}, " "))
}

// Parsed slices are parts of the frame, with limited capacity.
func TestParse_SlicesOfTheFrame(t *testing.T) {
	frame := (&Open{Params: []byte("params"), Meta: Meta{Trace: []byte("trace")}}).AppendTo(nil)
	m, err := ParseOpen(frame)
	require.NoError(t, err)
	_ = append(m.Params, 0xff)
	again, err := ParseOpen(frame)
	require.NoError(t, err)
	require.Equal(t, "trace", string(again.Meta.Trace), "an append to a part must not reach the rest of the frame")
	clear(frame)
	require.Equal(t, make([]byte, 6), m.Params, "no copy was made")
}

// A field of Meta is sent only in a message where it is valid.
func TestMeta_SentWhereValid(t *testing.T) {
	meta := Meta{TTL: 1, Loss: 2, Skipped: 3, Trace: []byte("t"), Key: []byte("k"), Metadata: []byte("m"), Stream: true, Window: 4}
	open, err := ParseOpen((&Open{Meta: meta}).AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Meta{TTL: 1, Trace: []byte("t"), Key: []byte("k"), Metadata: []byte("m"), Stream: true, Window: 4, Strings: 3}, open.Meta)
	block, err := ParseBlock((&Block{Meta: meta}).AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Meta{TTL: 1, Loss: 2, Skipped: 3}, block.Meta)

	require.Equal(t, (&Open{}).AppendTo(nil), (&Open{Meta: Meta{Loss: 1, Skipped: 1, Within: 5, Window: 6, Initial: 6, Strings: 7}}).AppendTo(nil))
	require.Equal(t, (&Block{}).AppendTo(nil), (&Block{Meta: Meta{Trace: []byte("t"), Key: []byte("k"), Metadata: []byte("m"), Nested: true, Stream: true, Strings: 9}}).AppendTo(nil))
}

// IsZero reports whether there is no field to send.
func TestMeta_IsZero(t *testing.T) {
	require.True(t, (&Meta{Trace: []byte{}, Key: []byte{}, Metadata: []byte{}, Within: 1, Window: 1, Initial: 1, Strings: 1}).IsZero())
	for _, m := range []Meta{{TTL: 1}, {Loss: 1}, {Skipped: 1}, {Trace: []byte{0}}, {Key: []byte{0}}, {Metadata: []byte{0}}, {Nested: true}, {Stream: true}} {
		require.False(t, m.IsZero(), "%+v", m)
	}
}

// Numbers beyond their limit are sent as the limit.
func TestNumbers_BeyondLimit(t *testing.T) {
	block, err := ParseBlock((&Block{Meta: Meta{TTL: math.MaxUint32, Loss: math.MaxUint8, Skipped: math.MaxUint64}}).AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Meta{TTL: MaxTTL, Loss: MaxLoss, Skipped: MaxPipe}, block.Meta)

	c, err := ParseControl(Credit{Pipe: 1, Limit: math.MaxUint64}.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Credit{Pipe: 1, Limit: MaxPipe}, c)

	c, err = ParseControl(Skip{Pipe: 1, Sent: math.MaxUint64}.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Skip{Pipe: 1, Sent: MaxPipe}, c)

	open, err := ParseOpen((&Open{Meta: Meta{Stream: true, Window: math.MaxUint64}}).AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, Meta{Stream: true, Window: MaxPipe}, open.Meta)
}

// A window of zero is not the same as no window.
func TestWindow_Zero(t *testing.T) {
	unary, stream := &Open{}, &Open{Meta: Meta{Stream: true}}
	require.NotEqual(t, unary.AppendTo(nil), stream.AppendTo(nil))
	for _, m := range []*Open{unary, stream} {
		got, err := ParseOpen(m.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, m.Meta.Stream, got.Meta.Stream)
	}
}

// Countable frames are those that a resume sends again.
func TestCountable_ForResume(t *testing.T) {
	for _, m := range []appender{
		&Open{Pipe: 1 << 40, Meta: meta}, &Block{}, &Block{End: true}, &Close{}, &Close{Abort: codec.ErrCanceled},
		Credit{Opens: true}, Credit{Pipe: 1 << 40}, Drain{None: true}, Stop{}, Skip{Pipe: 1 << 40},
	} {
		require.True(t, Countable(m.AppendTo(nil)), "%#v", m)
	}
	for _, m := range []Control{
		Sync{}, Ping{}, Pong{N: 9}, Ack{Count: 10}, SessionClose{Code: 9}, UnknownControl{}, UnknownControl{Code: 64}, UnknownControl{Code: 1 << 20},
	} {
		require.False(t, Countable(m.AppendTo(nil)), "%#v", m)
	}
}

// Durations are sent in milliseconds, rounded up.
func TestSync_Durations(t *testing.T) {
	const longest = math.MaxInt32 * time.Millisecond
	for sent, got := range map[time.Duration]time.Duration{
		-time.Second: 0, 0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		longest: longest, longest + 1: longest, math.MaxInt64: longest,
	} {
		c, err := ParseControl(Sync{Ping: sent, Timeout: sent}.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, Sync{Ping: got, Timeout: got}, c)
	}
}

// Long messages are truncated between runes.
func TestReason_CutBetweenRunes(t *testing.T) {
	for _, tt := range []struct{ name, sent, got string }{
		{"as long as may be", strings.Repeat("m", 1024), strings.Repeat("m", 1024)},
		{"one byte too long", strings.Repeat("m", 1025), strings.Repeat("m", 1024)},
		{"cut in the middle of two bytes", strings.Repeat("m", 1023) + "ß", strings.Repeat("m", 1023)},
		{"cut in the middle of four bytes", strings.Repeat("m", 1021) + "🌟", strings.Repeat("m", 1021)},
		{"cut behind four bytes", strings.Repeat("m", 1020) + "🌟m", strings.Repeat("m", 1020) + "🌟"},
		{"not UTF-8", "a\xffb", "a?b"},
		{"nothing but continuation bytes", strings.Repeat("\x80", 2000), "?"},
		{"half a rune at the end", "a\xc3", "a?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseClose((&Close{Abort: &codec.Abort{Message: tt.sent}}).AppendTo(nil))
			require.NoError(t, err)
			require.Equal(t, tt.got, m.Abort.Message)
			require.True(t, utf8.ValidString(m.Abort.Message))
		})
	}
}

// A parsed Abort has Ran Refused or MaybeRan, and no Cause.
func TestClose_Ran(t *testing.T) {
	for sent, got := range map[codec.Ran]codec.Ran{codec.MaybeRan: codec.MaybeRan, codec.NeverSent: codec.MaybeRan, codec.Refused: codec.Refused} {
		m, err := ParseClose((&Close{Abort: &codec.Abort{Code: codec.Failed, Ran: sent, Cause: codec.ErrStalled}}).AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, &codec.Abort{Code: codec.Failed, Ran: got, Remote: true}, m.Abort, sent)
	}
}

// A FrameError has the offset and the reason.
func TestFrameError_Text(t *testing.T) {
	_, err := ParseBlock([]byte{cborhead.Array | 3, 2, 24, 23, cborhead.Bytes})
	require.EqualError(t, err, "asterisque: bad frame at byte 2: non-shortest integer or length")
	var fe *FrameError
	require.ErrorAs(t, err, &fe)
	require.Equal(t, 2, fe.Offset)
	require.Equal(t, &codec.Abort{Code: codec.Protocol, Message: err.Error(), Cause: err}, codec.AbortOf(err))
	require.NotErrorIs(t, err, codec.ErrCanceled)
}

// No memory is sized by a length in a head that exceeds the frame.
func TestParse_HostileLengths(t *testing.T) {
	const runs, most = 100, 4 << 10
	for _, v := range readVectors(t).Invalid {
		spent := weightest.AllocatedAtMost(runs*most, func() {
			for range runs {
				_, _ = parseAs(v.Type, v.Hex)
			}
		})
		require.Less(t, spent/runs, most, v.Name)
	}
}
