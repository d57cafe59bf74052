package message

import (
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

// The cost of an Open is the same on both sides.
func TestOpen_CostOnBothSides(t *testing.T) {
	const overhead, early = 600, 4096
	params := make([]byte, 1000)
	for name, tt := range map[string]struct {
		meta Meta
		want uint64
	}{
		"nothing in its meta":        {Meta{}, 1600},
		"numbers are free":           {Meta{TTL: MaxTTL, Nested: true, Within: MaxPipe}, 1600},
		"trace and key":              {Meta{Trace: make([]byte, 55), Key: make([]byte, 16)}, 1671},
		"metadata":                   {Meta{Key: make([]byte, 16), Metadata: make([]byte, 300)}, 1916},
		"a stream":                   {Meta{Stream: true, Window: 1 << 20}, 5696},
		"what is not sent with it":   {Meta{Loss: 9, Skipped: 9, Window: 9}, 1600},
		"a nested stream with a key": {Meta{Nested: true, Stream: true, Key: make([]byte, 64)}, 5760},
	} {
		sent := Open{Params: params, Meta: tt.meta}
		require.Equal(t, tt.want, sent.Cost(overhead, early), name)
		got, err := ParseOpen(sent.AppendTo(nil))
		require.NoError(t, err, name)
		require.Equal(t, tt.want, got.Cost(overhead, early), name)
	}
}

// A peer may send any strings under unknown keys: their bytes count for the cost of the Open.
func TestOpen_CostOfUnknownKeys(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  int
	}{
		"bytes":             {make([]byte, 300), 300},
		"text":              {"später", 7},
		"empty text":        {"", 0},
		"number":            {uint64(1) << 50, 0},
		"float":             {1.5, 0},
		"null":              {nil, 0},
		"text in an array":  {[]string{"free"}, 0},
		"text in a map":     {map[string]string{"free": "free"}, 0},
		"bytes in a tag":    {cbor.Tag{Number: 24, Content: []byte("free")}, 0},
		"bytes in an array": {[][]byte{make([]byte, 100)}, 0},
	} {
		frame, err := canonicalMode.Marshal([]any{1, 2, 3, 0, []byte("params"), map[uint64]any{4: []byte("trace"), 5: []byte("key"), 7: 0, 100: tt.value}})
		require.NoError(t, err, name)
		m, err := ParseOpen(frame)
		require.NoError(t, err, name)
		require.Equal(t, tt.want+len("trace")+len("key"), m.Meta.Strings, name)
		require.EqualValues(t, tt.want+len("trace")+len("key")+len("params")+512+10, m.Cost(512, 10), name)
	}
	b, err := ParseBlock((&Block{Meta: Meta{TTL: 1}}).AppendTo(nil))
	require.NoError(t, err)
	require.Zero(t, b.Meta.Strings)
}

// The cost of a Block is its payload and the overhead.
func TestBlock_Cost(t *testing.T) {
	require.EqualValues(t, 512, (&Block{}).Cost(512))
	require.EqualValues(t, 1512, (&Block{Payload: make([]byte, 1000), Meta: Meta{TTL: 1, Loss: 1, Skipped: 1}}).Cost(512))
	require.Zero(t, (&Block{End: true}).Cost(512), "the end of a stream is free")
}

// withUnknownMeta returns the frame of m with one more entry in its meta, a text of 9 bytes. m must
// have a meta.
func withUnknownMeta(m *Open) []byte {
	frame := m.AppendTo(nil)
	bare := *m
	bare.Meta = Meta{}
	frame[len(bare.AppendTo(nil))]++
	return append(frame, "\x18\x64\x69something"...)
}
