package truncate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/truncate"
)

func TestText_CutsBetweenCharacters(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""}, {"abc", -1, ""}, {"", 0, ""},
		{"aß", 2, "a"}, {"aß", 3, "aß"}, {"€", 2, ""}, {"𝄞𝄞", 7, "𝄞"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80"},
	} {
		require.Equal(t, c.want, truncate.Text(c.text, c.most), "%q to %d", c.text, c.most)
		require.Equal(t, c.want, string(truncate.Text([]byte(c.text), c.most)))
	}
}
