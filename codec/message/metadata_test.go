package message

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// numbered returns n entries whose values have size bytes.
func numbered(n, size int) map[string]any {
	m := make(map[string]any)
	for i := range n {
		m[fmt.Sprintf("%02d", i)] = strings.Repeat("v", size)
	}
	return m
}

// atTheBound returns metadata with the maximum number of entries and of bytes.
func atTheBound() map[string]any {
	return numbered(MaxMetadataEntries, MaxMetadata/MaxMetadataEntries-2)
}

// with returns m with one additional entry.
func with(m map[string]any, key string, value any) map[string]any {
	m = maps.Clone(m)
	m[key] = value
	return m
}

// Metadata is read as it was written.
func TestMetadata_RoundTrip(t *testing.T) {
	for name, m := range map[string]map[string]any{
		"text and bytes":            {"text": "schön", "bytes": []byte{0, 0xff}, "ключ": "значение"},
		"empty values":              {"t": "", "b": []byte{}},
		"a key of 4096 bytes":       {strings.Repeat("k", MaxMetadata): ""},
		"a value of 4095 bytes":     {"k": make([]byte, MaxMetadata-1)},
		"32 entries and 4096 bytes": atTheBound(),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := AppendMetadata([]byte("before"), m)
			require.NoError(t, err)
			b = bytes.TrimPrefix(b, []byte("before"))
			want, err := canonicalMode.Marshal(m)
			require.NoError(t, err)
			require.Equal(t, want, b, "as another encoder writes it")
			require.NoError(t, CheckMetadata(b))
			got, err := ParseMetadata(b)
			require.NoError(t, err)
			clear(b)
			require.Equal(t, m, got, "no part of it is one of the bytes")
		})
	}
	b, err := AppendMetadata(nil, map[string]any{})
	require.NoError(t, err)
	require.Nil(t, b, "no entries are no metadata")
	m, err := ParseMetadata([]byte{cborhead.Map})
	require.NoError(t, err)
	require.Empty(t, m, "which is read all the same")
}

// Metadata beyond its bounds is not written.
func TestMetadata_BeyondBounds(t *testing.T) {
	for name, test := range map[string]struct {
		m      map[string]any
		reason string
	}{
		"one entry too many":          {numbered(MaxMetadataEntries+1, 0), `metadata: entry "32": one more than the 32 entries that there may be`},
		"one byte too many":           {with(atTheBound(), "31", strings.Repeat("v", MaxMetadata/MaxMetadataEntries-1)), `metadata: entry "31": with it keys and values have 4097 bytes, and 4096 are the most`},
		"a key of one byte too many":  {map[string]any{strings.Repeat("k", MaxMetadata+1): ""}, `metadata: entry "` + strings.Repeat("k", 64) + `": with it keys and values have 4097 bytes`},
		"an empty key":                {map[string]any{"": "v"}, `metadata: entry "": the key is empty`},
		"a key that is not UTF-8":     {map[string]any{"a\xff": "v"}, `metadata: entry "a\xff": the key is not valid UTF-8`},
		"a text that is not UTF-8":    {map[string]any{"k": "\xc3"}, `metadata: entry "k": the text is not valid UTF-8`},
		"a number":                    {map[string]any{"a": "fine", "k": 7}, `metadata: entry "k": a value of type int, not string or []byte`},
		"nil":                         {map[string]any{"k": nil}, `metadata: entry "k": a value of type <nil>, not string or []byte`},
		"a map":                       {map[string]any{"k": map[string]any{}}, `metadata: entry "k": a value of type map[string]interface {}, not string or []byte`},
		"a type of its own, of bytes": {map[string]any{"k": hexBytes{}}, `metadata: entry "k": a value of type message.hexBytes, not string or []byte`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := AppendMetadata([]byte("before"), test.m)
			require.ErrorContains(t, err, test.reason)
			require.ErrorIs(t, err, codec.ErrBadParams)
			require.Equal(t, "before", string(b))
		})
	}
}

// entry returns the encoding of an entry by another encoder.
func entry(t testing.TB, key, value any) []byte {
	k, err := canonicalMode.Marshal(key)
	require.NoError(t, err)
	v, err := canonicalMode.Marshal(value)
	require.NoError(t, err)
	return append(k, v...)
}

// Malformed metadata is refused.
func TestMetadata_Malformed(t *testing.T) {
	entries := func(list ...[]byte) []byte {
		return append(cborhead.AppendHead(nil, cborhead.Map, uint64(len(list))), slices.Concat(list...)...)
	}
	many := func(m map[string]any) []byte {
		b, err := canonicalMode.Marshal(m)
		require.NoError(t, err)
		return b
	}
	a, b, long := entry(t, "a", "1"), entry(t, "b", []byte("2")), entry(t, "aa", "3")
	for reason, data := range map[string][]byte{
		`entry "32": one more than the 32 entries`:                                                    many(numbered(MaxMetadataEntries+1, 0)),
		`entry "32": one more than the 32 entries that there may be`:                                  many(numbered(200, 20)),
		`entry "31": with it keys and values have 4097 bytes, and 4096 are the most`:                  many(with(atTheBound(), "31", make([]byte, MaxMetadata/MaxMetadataEntries-1))),
		`entry "k": with it keys and values have 60001 bytes`:                                         many(map[string]any{"k": make([]byte, 60_000)}),
		`entry "a": the key comes twice`:                                                              entries(a, entry(t, "a", []byte("other"))),
		`entry "a": its place is before the entry that it follows`:                                    entries(b, a),
		`entry "b": its place is before the entry that it follows`:                                    entries(a, long, b),
		`entry "": the key is empty`:                                                                  entries(entry(t, "", "1"), a),
		`entry 2: the key is an unsigned integer, not a text string`:                                  entries(a, entry(t, 7, "1")),
		`entry 1: the key is a byte string, not a text string`:                                        entries(entry(t, []byte("a"), "1")),
		`entry 1: the key is not valid UTF-8`:                                                         entries([]byte{cborhead.Text | 1, 0xff, cborhead.Text}),
		`entry "a": the value is not valid UTF-8`:                                                     entries([]byte{cborhead.Text | 1, 'a', cborhead.Text | 1, 0xff}),
		`entry "b": the value is an array, not a text string or a byte string`:                        entries(a, entry(t, "b", []string{"2"})),
		`entry "b": the value is an unsigned integer, not a text string or a byte string`:             entries(a, entry(t, "b", 1)),
		`entry "a": the value is a simple value or floating-point number, not a text string`:          entries(entry(t, "a", nil)),
		`entry "a": the value is a tag, not a text string or a byte string`:                           entries([]byte{cborhead.Text | 1, 'a', cborhead.Tag | 24, 24, cborhead.Bytes}),
		`entry "a": non-shortest integer or length`:                                                   entries([]byte{cborhead.Text | 1, 'a', cborhead.Bytes | 24, 1, 0}),
		`entry "a": indefinite length`:                                                                entries([]byte{cborhead.Text | 1, 'a', cborhead.Text | 31, cborhead.Text, 0xff}),
		`entry "a": ends in the middle`:                                                               entries(a)[:4],
		`entry 2: ends in the middle`:                                                                 append(entries(a, b)[:5], cborhead.Text|1),
		`byte 0: it is an array, not a map`:                                                           {cborhead.Array},
		`byte 0: it is a byte string, not a map`:                                                      {cborhead.Bytes},
		`byte 0: it has more elements than`:                                                           {cborhead.Map | 27, 0, 31, 255, 255, 255, 255, 255, 255},
		`byte 0: indefinite length`:                                                                   {cborhead.Map | 31, 0xff},
		`byte 0: ends in the middle`:                                                                  {},
		`byte 5: 1 bytes after the map`:                                                               append(entries(a), 0),
		`entry "` + strings.Repeat("k", 62) + `": its place is before the entry that it follows`:      entries(entry(t, strings.Repeat("k", 63), ""), entry(t, strings.Repeat("k", 62), "")),
		`entry "` + strings.Repeat("k", 64) + `": the value is an array, not a text string or a byte`: entries(entry(t, strings.Repeat("k", 1000), []int{})),
	} {
		m, err := ParseMetadata(data)
		require.ErrorContains(t, err, "metadata: "+reason)
		require.ErrorIs(t, err, codec.ErrBadParams)
		require.Nil(t, m)
		require.Equal(t, err, CheckMetadata(data), "both say the same")
	}
}

// The largest metadata fits beside the parameters of an Open in parts.
func TestMetadata_LargestInParts(t *testing.T) {
	m := make(map[string]any) // with the longest possible heads
	for i := range MaxMetadataEntries {
		m[fmt.Sprintf("%024d", i)] = make([]byte, 24)
	}
	left := MaxMetadata - MaxMetadataEntries*48
	for key := range m {
		if left < 256-24 {
			break
		}
		m[key] = make([]byte, 256)
		left -= 256 - 24
	}
	metadata, err := AppendMetadata(nil, m)
	require.NoError(t, err)
	all := Meta{
		TTL: MaxTTL, Trace: make([]byte, MaxTrace), Key: make([]byte, MaxKey), Metadata: metadata,
		Nested: true, Within: MaxPipe, Stream: true, Window: MaxPipe, Initial: MaxPipe,
	}
	open := Open{Pipe: MaxPipe, Params: make([]byte, 100_000), Meta: all}
	head, err := ParseHead(firstOf(&open, MaxPipe, LeastPart))
	require.NoError(t, err)
	require.Equal(t, 100_000, head.Content)
}

// A peer of an earlier version skips metadata as any unknown key, and counts it in the same way.
func TestMetadata_OlderPeer(t *testing.T) {
	metadata, err := AppendMetadata(nil, map[string]any{"k": strings.Repeat("v", 300), "b": []byte{1}})
	require.NoError(t, err)
	with := Open{Pipe: 4, Function: 7, Params: []byte("params"), Meta: Meta{TTL: 9, Key: []byte("key"), Metadata: metadata}}
	frame := with.AppendTo(nil)
	key := len(frame) - len(metadata) - cborhead.HeadSize(uint64(len(metadata))) - 1
	require.EqualValues(t, metadataKey, frame[key])
	frame[key] = 23 // which this version does not know either
	got, err := ParseOpen(frame)
	require.NoError(t, err)
	require.Equal(t, with.Cost(600, 4096), got.Cost(600, 4096))
	require.Equal(t, len("key")+len(metadata), got.Meta.Strings)
	got.Meta.Strings, with.Meta.Metadata = 0, nil
	require.Equal(t, with, got)
}
