package message

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
)

func addVectors(f *testing.F) {
	v := readVectors(f)
	for _, v := range v.Valid {
		f.Add([]byte(v.Hex))
	}
	for _, v := range v.Invalid {
		f.Add([]byte(v.Hex))
	}
}

// parse parses a frame of any type.
func parse(frame []byte) (appender, error) {
	t, err := TypeOf(frame)
	if err != nil {
		return nil, err
	}
	return parseAs([...]string{"control", "open", "block", "close", "part"}[t], frame)
}

// Arbitrary frames are read with few allocations and without a panic. A message that was read is
// written as the same message, and in the same bytes if none of them were ignored.
func FuzzDecode(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, name := range []string{"open", "block", "close", "part", "control"} {
			allocs := testing.AllocsPerRun(1, func() { parseAs(name, frame) })
			require.LessOrEqual(t, allocs, 32.0)
		}
		m, err := parse(frame)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrProtocol)
			return
		}
		again := m.AppendTo(nil)
		if bytes.Equal(again, frame) {
			return
		}
		require.Less(t, len(again), len(frame), "what was ignored is left out, nothing else changes")
		m2, err := parse(again)
		require.NoError(t, err)
		require.Equal(t, again, m2.AppendTo(nil))
	})
}

// An accepted frame holds the same for a strict CBOR library: without the ignored items, it is
// identical to the output of that library and of this package.
func FuzzAgreesWithCBOR(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := parse(frame)
		if err != nil {
			return
		}
		var list []cbor.RawMessage
		decodeStrictly(t, frame, &list)
		if open, ok := m.(*Open); ok && len(list) > 2+openFields {
			require.Equal(t, stringsOf(t, list[2+openFields]), open.Meta.Strings)
		}
		want, err := canonicalMode.Marshal(withoutIgnored(t, list, m))
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(m.AppendTo(nil)))
	})
}

var strictMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// decodeStrictly decodes data that a strict library must accept, too.
func decodeStrictly(t *testing.T, data []byte, v any) {
	err := strictMode.Unmarshal(data, v)
	if err != nil && strings.Contains(err.Error(), "tag number") {
		t.Skip("the library looks into tags 0 to 3 even where they are to be ignored, and has no type for that error")
	}
	require.NoError(t, err)
}

// withoutIgnored returns the elements of a frame without those that a receiver ignores.
func withoutIgnored(t *testing.T, list []cbor.RawMessage, m appender) []any {
	var keep []any
	for _, e := range list {
		keep = append(keep, e)
	}
	switch m := m.(type) {
	case *Open:
		if !m.Meta.Stream { // without Blocks, initial credit means nothing
			return keepKeys(t, keep, 5, 1, 4, 5, 6, 8)
		}
		return keepKeys(t, keep, 5, 1, 4, 5, 6, 7, 8, 9)
	case *Block:
		return keepKeys(t, keep, 3, 1, 2, 3)
	case *Close:
		if m.Abort != nil {
			keep[4] = cutText(t, list[4])
		}
	case Credit:
		if m.Extra == 0 {
			return keep[:4]
		}
	case SessionClose:
		keep[3] = cutText(t, list[3])
	case UnknownControl:
		return keep[:2]
	case Sync:
		keep = keepKeys(t, keep, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
		if len(keep) == 3 {
			keep = append(keep, map[uint64]any{})
		}
	}
	return keep
}

// keepKeys removes all entries but those with these keys from the map at list[at], if there is one,
// and removes zero values.
func keepKeys(t *testing.T, list []any, at int, keys ...uint64) []any {
	if len(list) <= at {
		return list
	}
	var m map[uint64]cbor.RawMessage
	decodeStrictly(t, list[at].(cbor.RawMessage), &m)
	known := map[uint64]any{}
	for _, k := range keys {
		number := at == 5 && (k == 6 || k == 7) // of an Open: 0 is an id or a window, and sent
		if v, ok := m[k]; ok && (number || v[0] != cborhead.Unsigned && v[0] != cborhead.Bytes) {
			known[k] = v
		}
	}
	return withMap(list[:at:at], known)
}

// stringsOf returns the sum of the lengths of the strings that are values of a map.
func stringsOf(t *testing.T, raw cbor.RawMessage) (sum int) {
	var m map[uint64]cbor.RawMessage
	decodeStrictly(t, raw, &m)
	for _, v := range m {
		if major := v[0] &^ 31; major == cborhead.Bytes || major == cborhead.Text {
			head := 1 // or more where the length does not fit in it
			if v[0]&31 >= 24 {
				head += 1 << (v[0]&31 - 24)
			}
			sum += len(v) - head
		}
	}
	return sum
}

func cutText(t *testing.T, raw cbor.RawMessage) string {
	var s string
	require.NoError(t, strictMode.Unmarshal(raw, &s))
	for end := min(len(s), codec.MaxReason); ; end-- {
		if end == len(s) || s[end]&0xc0 != 0x80 {
			return s[:end]
		}
	}
}

// A message of any content is received as it was sent, and its encoding equals that of a CBOR
// library.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(0), uint64(0), int64(0), []byte(nil), []byte(nil), "", false)
	f.Add(uint64(MaxPipe), uint64(MaxPipe), int64(math.MaxInt64), []byte("payload"), []byte("trace"), "no\xff text", true)
	f.Add(uint64(24), uint64(65536), int64(-129), make([]byte, 300), make([]byte, 64), strings.Repeat("ß", 600), true)
	f.Fuzz(func(t *testing.T, pipe, n uint64, i int64, b, id []byte, s string, flag bool) {
		pipe, n = pipe&MaxPipe, n&MaxPipe
		message := delivered(t, s)
		for _, m := range pipeMessages(pipe, n, i, b, id, message, flag) {
			requireRoundTrip(t, m)
		}
		for _, m := range controls(pipe, n, i, b, id, message) {
			requireRoundTrip(t, m)
		}
	})
}

// delivered returns s as a receiver gets it.
func delivered(t *testing.T, s string) string {
	c, err := ParseControl(SessionClose{Message: s}.AppendTo(nil))
	require.NoError(t, err)
	return c.(SessionClose).Message
}

func pipeMessages(pipe, n uint64, i int64, b, id []byte, message string, flag bool) []appender {
	ttl := uint32(n % (MaxTTL + 1))
	open := &Open{
		Pipe: pipe, Function: uint16(n), Priority: int8(i), Params: b,
		Meta: Meta{TTL: ttl, Trace: first(id, MaxTrace), Key: first(id, MaxKey), Metadata: first(b, MaxFrame), Nested: n%2 > 0, Within: n / 2 * (n % 2), Stream: flag},
	}
	block := &Block{Pipe: pipe, Meta: Meta{TTL: ttl, Loss: uint8(n % (MaxLoss + 1)), Skipped: n}}
	if flag {
		open.Meta.Window, open.Meta.Initial = pipe, n
	}
	abort := &codec.Abort{Code: codec.Code(i), Message: message, Detail: b, Remote: true}
	if flag {
		block.End = true
		abort.Ran = codec.Refused
	} else {
		block.Payload = b
	}
	last := append(first(b, MaxPart-1), 0)
	return []appender{
		open, block, &Close{Pipe: pipe, Result: b}, &Close{Pipe: pipe, Abort: abort},
		&Part{Pipe: pipe, Bytes: last}, &Part{Pipe: pipe, Bytes: last, Whole: uint64(len(last))}, &Part{Pipe: pipe, GivenUp: true},
		&Part{Pipe: pipe, Bytes: make([]byte, LeastPart+len(last)%LeastPart), Whole: max(pipe, MaxPart)},
	}
}

func controls(pipe, n uint64, i int64, b, id []byte, message string) []Control {
	sync := Sync{
		Version: n, Node: first(id, MaxNode), Features: n, MaxMessage: pipe, Window: n, Opens: pipe,
		Ping: time.Duration(n%(MaxTTL+1)) * time.Millisecond, Timeout: time.Duration(pipe%(MaxTTL+1)) * time.Millisecond,
		Codecs: []string{"cbor"}, Credential: first(b, MaxCredential),
		Overhead: max(n, MinOverhead), NestedRoom: pipe, NestedCalls: n, Extra: pipe,
	}
	if len(id) >= SessionSize {
		sync.Session = id[:SessionSize]
	}
	if len(message) > 0 && len(message) <= MaxCodecName {
		sync.Codecs = append(sync.Codecs, message)
	}
	return []Control{
		sync, Ping{N: n}, Ping{N: pipe, Holds: n}, Pong{N: n}, Credit{Opens: true, Limit: n}, Credit{Opens: true, Limit: n, Extra: pipe}, Credit{Pipe: pipe, Limit: n}, Ack{Count: n},
		Drain{None: true}, Drain{Last: pipe}, SessionClose{Code: codec.Code(i), Message: message}, Stop{Pipe: pipe},
		Skip{Pipe: pipe, Sent: n}, UnknownControl{Code: max(n, 64)},
	}
}

func requireRoundTrip(t *testing.T, m appender) {
	t.Helper()
	frame := m.AppendTo(nil)
	require.Equal(t, canonical(t, m), frame)
	require.Equal(t, append([]byte("before"), frame...), m.AppendTo([]byte("before")))
	got, err := parse(frame)
	require.NoError(t, err)
	requireSame(t, m, got)
}

func first(b []byte, n int) []byte {
	n = min(len(b), n)
	return b[:n:n]
}
