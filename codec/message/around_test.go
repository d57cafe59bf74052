package message

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizedBlock is a Block of which AppendAround gets the size of the payload alone.
type sizedBlock struct{ *Block }

func (b sizedBlock) AppendAround(dst []byte) ([]byte, int) {
	m := *b.Block
	m.Payload = nil
	return m.AppendAround(dst, len(b.Payload))
}

// AppendAround with the payload in its place is the frame.
func TestAppendAround_SameFrame(t *testing.T) {
	type around interface {
		appender
		AppendAround(dst []byte) ([]byte, int)
	}
	for _, size := range []int{0, 1, 23, 24, 255, 256, 65_535, 65_536, 70_000} {
		payload := bytes.Repeat([]byte{0x5a}, size)
		for name, m := range map[string]around{
			"Open":            &Open{Pipe: 300, Function: 70, Priority: -3, Params: payload},
			"Open with meta":  &Open{Pipe: 1 << 40, Function: 7, Params: payload, Meta: Meta{TTL: 9, Trace: []byte("t"), Key: []byte("k"), Metadata: []byte("m"), Nested: true, Within: 5, Stream: true}},
			"Block":           sizedBlock{&Block{Pipe: 2, Payload: payload}},
			"Block with meta": sizedBlock{&Block{Pipe: 2, Payload: payload, Meta: Meta{TTL: 1, Loss: 5, Skipped: 1000}}},
			"Close":           &Close{Pipe: 77, Result: payload},
		} {
			before := []byte("before")
			b, at := m.AppendAround(slices.Clone(before))
			require.Equal(t, m.AppendTo(slices.Clone(before)), slices.Insert(b, at, payload...), "%s with %d bytes", name, size)
		}
	}
}
