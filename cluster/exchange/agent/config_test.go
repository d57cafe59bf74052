package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestConfig_Errors(t *testing.T) {
	t.Parallel()
	at := []string{"tcp://127.0.0.1:1"}
	for want, c := range map[string]Config{
		"Config.Exchange is empty":  {},
		"scheme":                    {Exchange: []string{"what://x"}},
		`the name "a b"`:            {Exchange: at, Name: "a b"},
		`the id "*"`:                {Exchange: at, ID: "*"},
		"Config.Sessions is 100000": {Exchange: at, Sessions: 100_000},
		"metadata":                  {Exchange: at, Metadata: map[string]string{"a": strings.Repeat("x", 5000)}},
	} {
		_, err := Join(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
	_, err := Join(t.Context(), Config{Exchange: at}, asterisque.WithPriorities(asterisque.Priorities{LowerShare: 2}))
	require.Error(t, err, "options are checked")
}

func TestURLs_InTurn(t *testing.T) {
	t.Parallel()
	u := &exchangeURLs{all: []string{"a", "b", "c"}}
	require.Equal(t, "a", u.next())
	require.Equal(t, "b", u.next())
	u.good()
	require.Equal(t, "b", u.next(), "the one that was connected comes first")
	require.Equal(t, "c", u.next())
	require.Equal(t, "a", u.next())
}
