package message

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// withinBounds reports whether m is metadata within the bounds of the specification.
func withinBounds(m map[string]any) bool {
	bytes := 0
	for key, v := range m {
		switch v := v.(type) {
		case string:
			bytes += len(v)
		case []byte:
			bytes += len(v)
		default:
			return false
		}
		if bytes += len(key); key == "" {
			return false
		}
	}
	return len(m) <= 32 && bytes <= 4096
}

// Metadata of any bytes is accepted if a strict CBOR library decodes entries within the bounds from
// it and encodes them as the same bytes; other bytes are rejected. Both decode the same entries.
func FuzzMetadataAgreesWithCBOR(f *testing.F) {
	for _, v := range readMetadataVectors(f) {
		f.Add([]byte(v.Hex))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseMetadata(data)
		require.Equal(t, err, CheckMetadata(data))
		var want map[any]any
		theirs := strictMode.Unmarshal(data, &want)
		if err != nil {
			require.ErrorIs(t, err, codec.ErrBadParams)
			require.True(t, utf8.ValidString(err.Error()))
			require.Less(t, len(err.Error()), 500)
			require.False(t, theirs == nil && agrees(t, want, data), "%x is refused: %v", data, err)
			return
		}
		require.NoError(t, theirs)
		require.Len(t, want, len(got))
		for key, value := range want {
			require.Equal(t, value, got[key.(string)])
		}
		again, err := AppendMetadata(nil, got)
		require.NoError(t, err)
		if len(got) > 0 {
			require.Equal(t, hex.EncodeToString(data), hex.EncodeToString(again))
		}
	})
}

// agrees reports whether m is metadata and data its encoding by a CBOR library.
func agrees(t *testing.T, m map[any]any, data []byte) bool {
	texts := make(map[string]any)
	for key, value := range m {
		text, ok := key.(string)
		if !ok {
			return false
		}
		texts[text] = value
	}
	if m == nil || !withinBounds(texts) {
		return false
	}
	canonical, err := canonicalMode.Marshal(texts)
	require.NoError(t, err)
	return string(canonical) == string(data)
}

// Any map within the bounds arrives unchanged, and one outside of them is not sent.
func FuzzMetadataRoundTrip(f *testing.F) {
	f.Add("k", "v", []byte{1, 0xff}, uint8(1))
	f.Add("", "", []byte(nil), uint8(0))
	f.Add("κ", "\xff", make([]byte, 200), uint8(31))
	f.Add("key", strings.Repeat("v", 120), make([]byte, 130), uint8(32))
	f.Add("k", "v", make([]byte, 4000), uint8(33))
	f.Fuzz(func(t *testing.T, key, text string, bytes []byte, n uint8) {
		m := map[string]any{}
		for i := range n % 40 {
			if k := key + strings.Repeat("x", int(i)/2); i%2 == 0 {
				m[k] = text
			} else {
				m[strings.Repeat("y", int(i)/2)+k] = append([]byte{}, bytes...)
			}
		}
		encoded, err := AppendMetadata(nil, m)
		valid := withinBounds(m)
		for k, v := range m {
			s, _ := v.(string)
			valid = valid && utf8.ValidString(k) && utf8.ValidString(s)
		}
		if !valid {
			require.ErrorIs(t, err, codec.ErrBadParams)
			return
		}
		require.NoError(t, err)
		open, err := ParseOpen((&Open{Meta: Meta{Metadata: encoded}}).AppendTo(nil))
		require.NoError(t, err)
		if len(m) == 0 {
			require.Empty(t, open.Meta.Metadata)
			return
		}
		got, err := ParseMetadata(open.Meta.Metadata)
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}
