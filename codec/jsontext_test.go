package codec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAttackJSON_InvalidUTF8 requires that JSON with invalid UTF-8 is rejected. Package
// encoding/json would replace each invalid byte by three bytes, which the estimate does not
// include.
func TestAttackJSON_InvalidUTF8(t *testing.T) {
	for _, data := range []string{`"` + strings.Repeat("\xff", 1000) + `"`, "[\"\xc3\"]", "{\"a\xed\xa0\x80\":1}"} {
		var loose any
		require.ErrorContains(t, JSON.Decode([]byte(data), &loose), "no UTF-8")
		var text string
		require.Error(t, JSON.Decode([]byte(data), &text))
		require.Empty(t, text)
	}
	var text string
	require.NoError(t, JSON.Decode([]byte(`"äöü€𝄞\ud834\udd1e\ud834"`), &text))
	require.Equal(t, "äöü€𝄞𝄞\ufffd", text)
}
