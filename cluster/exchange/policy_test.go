package exchange_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/exchange"
)

func TestPolicy_Read(t *testing.T) {
	t.Parallel()
	rules, err := exchange.ReadPolicy(strings.NewReader("# tills\ntill -> orders # only\n\n office->*\n"))
	require.NoError(t, err)
	require.Equal(t, []exchange.Rule{{From: "till", To: "orders"}, {From: "office", To: "*"}}, rules)
	for text, want := range map[string]string{
		"a -> b\nc d":      `line 2 of the policy is "c d"`,
		"a ->":             "line 1 of the policy, \"a\" -> \"\": a rule needs a From and a To",
		"a -> b\n\n* a->b": "line 3 of the policy",
		"a -> b -> c":      `line 1 of the policy is "a -> b -> c"`,
		"\ufeffa -> b":     "that cannot be printed",
		"a -> \xff":        "that cannot be printed",
	} {
		_, err := exchange.ReadPolicy(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}
