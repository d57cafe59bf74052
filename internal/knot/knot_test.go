package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUses_Cycle(t *testing.T) {
	packages, err := load([]string{"testdata/tied"})
	require.NoError(t, err)
	p := packages[0]
	edges := p.uses()
	require.Equal(t, map[use]bool{
		{"a.go", "b.go"}:       true, // two
		{"b.go", "a.go"}:       true, // Session
		{"b.go", "c.go"}:       true, // three
		{"c.go", "a.go"}:       true, // Session
		{"c.go", "b.go"}:       true, // apart
		{"c.go", "session.go"}: true, // start
		{"session.go", "a.go"}: true, // Session, and its field a
	}, edges)
	require.Equal(t, []string{"a.go", "b.go", "c.go", "session.go"}, largestCycle(edges))
	require.Equal(t, []use{{"a.go", "b.go"}, {"b.go", "c.go"}}, mutual(edges))
}

func TestMembers_OfType(t *testing.T) {
	packages, err := load([]string{"testdata/tied"})
	require.NoError(t, err)
	p := packages[0]
	home, away := p.methods("Session")
	require.Equal(t, []string{"session.go:home"}, home)
	require.Equal(t, []string{"a.go:one", "b.go:two", "c.go:three"}, away)
	home, away = p.methods("list")
	require.Empty(t, home)
	require.Equal(t, []string{"session.go:len"}, away)
	require.Equal(t, 5, p.fields("Session"))
}

func TestLargestCycle(t *testing.T) {
	for _, c := range []struct{ edges, want string }{
		{"", ""},
		{"ab bc cd", ""},
		{"ab ba", "ab"},
		{"ab ba bc cd de ec", "cde"},
		{"ab bc ca cd dc", "abcd"},
		{"ab bc cb ad da", "ad"},
	} {
		edges := make(map[use]bool)
		for e := range strings.FieldsSeq(c.edges) {
			edges[use{e[:1], e[1:]}] = true
		}
		if c.want == "ad" {
			delete(edges, use{"c", "b"}) // otherwise two are equally large
		}
		require.Equal(t, c.want, strings.Join(largestCycle(edges), ""), c.edges)
	}
}

func TestLines_FilesAndFunctions(t *testing.T) {
	library, tests, err := lines("testdata/tied")
	require.NoError(t, err)
	require.Empty(t, tests)
	require.Len(t, library.files, 4)
	require.Len(t, library.functions, 6)
	for what, want := range map[string]int{
		"files-over-9":     1, // a.go
		"files-over-13":    0,
		"functions-over-1": 0,
		"functions-over-0": 6,
		"function-median":  1,
	} {
		f, err := library.figure(what)
		require.NoError(t, err)
		require.Equal(t, want, f.number, what)
	}
	_, err = library.figure("cycle")
	require.Error(t, err)
}

const before = `# a remark
.      cycle   6  10
limits cycle   3   3
pipe   cycle   3   -
wire   cycle   3   -
`

func TestCheck_ReachedNeverGrows(t *testing.T) {
	rows, err := parseRows(before)
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		figures []figure
		want    string // in the error, or in the output
	}{
		{"as reached", numbers(10, 3, absent, absent), "still to come"},
		{"lower", numbers(8, 1, 2, absent), "can be lowered"},
		{"grown", numbers(11, 3, absent, absent), "1 numbers are above"},
		{"grown above a bound that is reached", numbers(10, 4, absent, absent), "1 numbers are above"},
		{"new, and above its bound", numbers(10, 3, 4, absent), "1 numbers are above"},
	} {
		var told bytes.Buffer
		if err := check(&told, rows, c.figures); err != nil {
			require.ErrorContains(t, err, c.want, c.name)
			require.Contains(t, told.String(), "ABOVE: here", c.name)
		} else {
			require.Contains(t, told.String(), c.want, c.name)
		}
	}
}

func TestTable_IsOnlyLowered(t *testing.T) {
	rows, err := parseRows(before)
	require.NoError(t, err)
	after, err := parseRows(lowered(before, rows, numbers(8, 4, 2, absent)))
	require.NoError(t, err)
	require.Equal(t, []int{8, 3, 3, absent},
		[]int{after[0].reached, after[1].reached, after[2].reached, after[3].reached})
	require.True(t, strings.HasPrefix(lowered(before, rows, numbers(8, 4, 2, absent)), "# a remark\n"))
}

func TestRows_Invalid(t *testing.T) {
	for _, text := range []string{". cycle 6", ". cycle six 7", ". cycle 6 seven", ". cycle 6 5"} {
		_, err := parseRows(text)
		require.ErrorContains(t, err, "bounds.txt:1")
	}
}

func TestMeasure_MissingIsError(t *testing.T) {
	_, err := measure([]row{{of: "testdata/gone", what: "cycle", bound: 3, reached: 3}})
	require.Error(t, err)
	figures, err := measure([]row{{of: "testdata/gone", what: "cycle", bound: 3, reached: absent}})
	require.NoError(t, err)
	require.Equal(t, absent, figures[0].number)
	_, err = measure([]row{{of: "testdata/tied", what: "fields-of-Nobody", bound: 3, reached: 3}})
	require.ErrorContains(t, err, "no struct Nobody")
}

func numbers(all ...int) (figures []figure) {
	for _, n := range all {
		figures = append(figures, figure{n, "here"})
	}
	return figures
}
