package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/spec"
)

func suiteOfTheSpecification(t *testing.T) *suite {
	s, err := load(spec.Scenarios)
	require.NoError(t, err)
	return s
}

// Each scenario names an existing section of the specification.
func TestSuite_Sections(t *testing.T) {
	text, err := os.ReadFile("../spec/protocol.md")
	require.NoError(t, err)
	slugs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		slug := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")
		slugs[regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(slug, "")] = true
	}
	s := suiteOfTheSpecification(t)
	require.GreaterOrEqual(t, len(s.Scenarios), 350)
	for _, sc := range s.Scenarios {
		require.True(t, slugs[sc.Section], "%s: %q is no heading", sc.Name, sc.Section)
	}
}

// Each step is documented.
func TestSuite_Steps(t *testing.T) {
	text, err := os.ReadFile("../spec/scenarios.md")
	require.NoError(t, err)
	for key := range acts {
		require.Contains(t, string(text), "`"+key+"`")
	}
	for key := range builders {
		require.Contains(t, string(text), `{"`+key+`": `)
	}
	for key := range tests {
		require.Contains(t, string(text), `{"`+key+`": `)
	}
}

// Mistakes in a suite are found.
func TestSuite_Mistakes(t *testing.T) {
	for name, file := range map[string]string{
		"no step":         `{"version": 1, "scenarios": [{"name": "a", "section": "s", "steps": [{"dance": 1}]}]}`,
		"another version": `{"version": 2}`,
		"a name twice":    `{"version": 1, "scenarios": [{"name": "a", "section": "s", "steps": [{"alive": true}]}, {"name": "a", "section": "s", "steps": [{"alive": true}]}]}`,
		"no sequence":     `{"version": 1, "scenarios": [{"name": "a", "section": "s", "steps": [{"do": "b"}]}]}`,
		"unknown member":  `{"version": 1, "scenery": []}`,
		"no role":         `{"version": 1, "scenarios": [{"name": "a", "section": "s", "role": "sleeps", "steps": [{"alive": true}]}]}`,
	} {
		_, err := load([]byte(file))
		require.Error(t, err, name)
	}
}

func TestExpression(t *testing.T) {
	names := map[string]any{"early": int64(4096), "one": int64(1), "b": []byte("abc")}
	for text, want := range map[string]int64{
		"1 + 2 * 3": 7, "(1 + 2) * 3": 9, "early - 96 / 2": 4048, "10 - 3 - 2": 5, "early >= 4096": 1, "early < 4096": 0, "len(b) + one": 4,
	} {
		n, err := calculate(text, names)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "1 +", "late", "b", "1 / 0", "1 2", "(1", "len(one)", "9223372036854775807 + 1"} {
		_, err := calculate(text, names)
		require.Error(t, err, text)
	}
}

// The list has every scenario.
func TestSuite_List(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-list", "-run", "coming-back"}, &out))
	require.Contains(t, out.String(), "coming-back              a call goes on over another wire\n")
	require.NotContains(t, out.String(), "handshake")
}

func TestArguments_Invalid(t *testing.T) {
	for _, args := range [][]string{{}, {"-dial", "a", "-listen", "b"}, {"-list", "x"}, {"-parallel", "0", "-list"}, {"-patience", "0s", "-list"}, {"-list", "-run", "("}} {
		require.ErrorAs(t, run(t.Context(), args, new(bytes.Buffer)), new(usageError), "%q", args)
	}
}
