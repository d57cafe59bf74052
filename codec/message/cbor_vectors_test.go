package message

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

// cborReason matches the reasons that concern only CBOR: lengths, heads and keys. A strict library
// detects these errors without knowledge of the message.
var cborReason = regexp.MustCompile(`non-shortest|indefinite length|reserved length|break without|simple value \d+ in two|ends in the middle|` +
	`more elements than|bytes after the frame|not valid UTF-8|key \d+ after key`)

// emptyArray is the reason of a vector that ends in the middle of the message and is valid CBOR.
const emptyArray = "empty array"

// withoutTags accepts all valid frames, except for ignored tags.
var withoutTags = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// canonicalFrame reports whether decoding frame and encoding the result with a CBOR library returns
// the same bytes. Without tags, floating-point numbers and ignored entries, CBOR has exactly one
// such form.
func canonicalFrame(frame []byte) bool {
	var v any
	if withoutTags.Unmarshal(frame, &v) != nil {
		return false
	}
	again, err := canonicalMode.Marshal(v)
	return err == nil && bytes.Equal(again, frame)
}

// A CBOR library reads the elements of valid vectors.
func TestVectorsValid_CBORReads(t *testing.T) {
	for _, v := range readVectors(t).Valid {
		require.NoError(t, strictMode.Wellformed(v.Hex), v.Name)
		if v.Oneway {
			continue
		}
		require.True(t, canonicalFrame(v.Hex), v.Name)
		var got, want any
		require.NoError(t, strictMode.Unmarshal(v.Hex, &got), v.Name)
		require.NoError(t, strictMode.Unmarshal(canonical(t, v.Message.goMessage()), &want))
		require.Equal(t, want, got, v.Name)
	}
}

// A CBOR library refuses invalid CBOR.
func TestCBOR_RefusesInvalid(t *testing.T) {
	seen := 0
	for _, v := range readVectors(t).Invalid {
		if cborReason.MatchString(v.Reason) && v.Name != emptyArray {
			require.False(t, canonicalFrame(v.Hex), "%s: %s", v.Name, v.Reason)
			seen++
		}
	}
	require.Greater(t, seen, 300)
}
