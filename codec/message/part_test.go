package message

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// firstOf returns the first part of m, with n bytes.
func firstOf(m appender, pipe uint64, n int) *Part {
	frame := m.AppendTo(nil)
	return &Part{Pipe: pipe, Bytes: frame[:n], Whole: uint64(len(frame))}
}

// The first part contains the head of the message.
func TestParseHead_FirstPart(t *testing.T) {
	content := bytes.Repeat([]byte{0x5a}, 100_000)
	for name, test := range map[string]struct {
		m    appender
		want Head
	}{
		"Open":     {&Open{Pipe: 8, Function: 3, Priority: -9, Params: content}, Head{Type: OpenType, Pipe: 8, Priority: -9, Content: 100_000}},
		"Block":    {&Block{Pipe: 8, Payload: content, Meta: Meta{TTL: 7}}, Head{Type: BlockType, Pipe: 8, Content: 100_000}},
		"result":   {&Close{Pipe: 8, Result: content}, Head{Type: CloseType, Pipe: 8, Content: 100_000}},
		"abort":    {&Close{Pipe: 8, Abort: &codec.Abort{Message: "no", Detail: content}}, Head{Type: CloseType, Pipe: 8, Abort: true}},
		"all meta": {&Open{Pipe: 8, Params: content, Meta: Meta{TTL: MaxTTL, Trace: make([]byte, MaxTrace), Key: make([]byte, MaxKey), Nested: true, Within: MaxPipe, Stream: true, Window: MaxPipe, Initial: MaxPipe}}, Head{Type: OpenType, Pipe: 8, Content: 100_000}},
	} {
		head, err := ParseHead(firstOf(test.m, 8, LeastPart))
		require.NoError(t, err, name)
		require.Equal(t, content[:head.Content], test.m.AppendTo(nil)[head.At:head.At+head.Content], name)
		head.At = 0
		require.Equal(t, test.want, head, name)
	}
}

// A first part that no message begins with is refused.
func TestParseHead_Refused(t *testing.T) {
	block := &Block{Pipe: 8, Payload: make([]byte, 100_000)}
	longer := firstOf(block, 8, LeastPart)
	longer.Whole += MaxAround
	around := firstOf(&Open{Pipe: 8, Params: make([]byte, 100_000)}, 8, LeastPart)
	around.Whole = 100_000 + MaxAroundOpen + 1
	shorter := firstOf(block, 8, LeastPart)
	shorter.Whole = 100_000
	for reason, p := range map[string]*Part{
		"is of a message of pipe 8":                    firstOf(block, 6, LeastPart),
		"message type 0":                               firstOf(Sync{Credential: make([]byte, 4000)}, 0, LeastPart),
		"message type 4":                               firstOf(&Part{Pipe: 8, Bytes: make([]byte, 4000)}, 8, LeastPart),
		"is no byte string":                            {Pipe: 8, Bytes: append((&Block{Pipe: 8, End: true}).AppendTo(nil), make([]byte, LeastPart)...), Whole: 4000},
		"content of 100000 bytes in a frame of 1010":   longer,
		"content of 100000 bytes in a frame of 106145": around,
		"content of 100000 bytes in a frame of 100000": shorter,
		"ends in the middle":                           {Pipe: 8, Bytes: []byte{0x83, 2, 8, 0x59}, Whole: 4},
		"Block with 5 elements":                        {Pipe: 8, Bytes: append([]byte{0x85, 2, 8}, make([]byte, LeastPart)...), Whole: 4000},
	} {
		_, err := ParseHead(p)
		require.ErrorContains(t, err, reason)
		require.ErrorIs(t, err, codec.ErrProtocol)
	}
}

// contentOf returns params, payload or result of a message.
func contentOf(m any) []byte {
	switch m := m.(type) {
	case *Open:
		return m.Params
	case *Block:
		return m.Payload
	default:
		return m.(*Close).Result
	}
}

// ParseHead of arbitrary bytes does not panic, and returns the same as a parser of the whole frame.
func FuzzHead(f *testing.F) {
	for _, v := range readVectors(f).Valid {
		f.Add([]byte(v.Hex), uint16(len(v.Hex)))
	}
	f.Fuzz(func(t *testing.T, frame []byte, n uint16) {
		whole, err := parse(frame)
		cut := frame[:min(len(frame), max(int(n), LeastPart))]
		p := &Part{Bytes: cut, Whole: uint64(len(frame))}
		var want Head
		switch m := whole.(type) {
		case *Open:
			want = Head{Type: OpenType, Pipe: m.Pipe, Priority: m.Priority, Content: len(m.Params)}
		case *Block:
			want = Head{Type: BlockType, Pipe: m.Pipe, Content: len(m.Payload)}
		case *Close:
			want = Head{Type: CloseType, Pipe: m.Pipe, Abort: m.Abort != nil, Content: len(m.Result)}
		}
		p.Pipe = want.Pipe
		head, headErr := ParseHead(p)
		end, most := false, MaxAround
		if want.Type == OpenType {
			most = MaxAroundOpen
		}
		if b, ok := whole.(*Block); ok {
			end = b.End
		}
		switch {
		case err != nil || want.Type == ControlType || end:
			// an invalid message may have a valid head
		case !want.Abort && len(frame)-want.Content > most:
			require.Error(t, headErr)
		default:
			require.NoError(t, headErr)
			want.At = head.At
			require.Equal(t, want, head)
			require.True(t, want.Abort || bytes.HasPrefix(frame[head.At:], contentOf(whole)))
		}
	})
}
