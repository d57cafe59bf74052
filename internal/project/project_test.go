package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the tests in the folder of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// filesThat returns the files with a path that ends in suffix, except for hidden folders and test
// data.
func filesThat(t *testing.T, suffix string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(path, ".") && path != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	}))
	require.NotEmpty(t, files)
	return files
}

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

var (
	code     = regexp.MustCompile("(?s)```.*?```")
	goCode   = regexp.MustCompile("(?ms)^(?:```|~~~)go\n(.*?)^(?:```|~~~)")
	target   = regexp.MustCompile(`\]\(([^)]+)\)`)
	absolute = regexp.MustCompile(`^([a-z]+:|#)`)
	indent   = regexp.MustCompile(`(?m)^\t+`)
)

// TestREADME_ShowsExamples requires that each piece of code in the README is part of an example
// that runs.
func TestREADME_ShowsExamples(t *testing.T) {
	var examples strings.Builder
	for _, file := range filesThat(t, "_test.go") {
		examples.WriteString(indent.ReplaceAllString(text(t, file), ""))
	}
	blocks := goCode.FindAllStringSubmatch(text(t, "README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		for piece := range strings.SplitSeq(block[1], "\n\n") {
			require.Contains(t, examples.String(), indent.ReplaceAllString(piece, ""))
		}
	}
}

func TestLinks_LeadSomewhere(t *testing.T) {
	for _, page := range filesThat(t, ".md") {
		for _, link := range target.FindAllStringSubmatch(code.ReplaceAllString(text(t, page), ""), -1) {
			file, _, _ := strings.Cut(link[1], "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), file)); !absolute.MatchString(link[1]) {
				assert.NoError(t, err, "%s: %s", page, link[0])
			}
		}
	}
}

// TestModules_NoNATSServer requires that only modules that start a NATS server name one. Programs
// with cluster or natswire have all that their go.mod files name in the module graph.
func TestModules_NoNATSServer(t *testing.T) {
	var with []string
	for _, file := range filesThat(t, "go.mod") {
		if strings.Contains(text(t, file), "nats-server") {
			with = append(with, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	slices.Sort(with)
	require.Equal(t, []string{"bench", "cluster/broker", "cluster/cmd/exchange", "cluster/test", "examples/fleet", "examples/interop"}, with)
}

// TestContributing_NamesAllSteps compares the first column of the table with the steps of .ci/run.
func TestContributing_NamesAllSteps(t *testing.T) {
	_, rest, _ := strings.Cut(text(t, ".ci/run"), "\nreadonly steps='")
	list, _, ok := strings.Cut(rest, "'\n")
	require.True(t, ok)
	_, table, ok := strings.Cut(text(t, "CONTRIBUTING.md"), "| step |")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	var steps, named []string
	for _, step := range regexp.MustCompile(`(?m)^\w+`).FindAllString(list, -1) {
		steps = append(steps, "`"+step+"`")
	}
	for _, cell := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(table, -1) {
		named = append(named, strings.Split(cell[1], ", ")...)
	}
	require.Equal(t, steps, named)
}

// unproved is the section of the specification that no vector and no scenario can prove: the peer
// does not see how a side computes its numbers.
const unproved = "dividing-the-room"

// TestSpecification_IsProved requires a vector or a scenario for each section with rules for peers.
// These are all sections from the second to the one before the example.
func TestSpecification_IsProved(t *testing.T) {
	_, spec, _ := strings.Cut(text(t, "spec/protocol.md"), "\n## 1. ")
	spec, _, ok := strings.Cut(spec, " An example\n")
	require.True(t, ok)
	sections := map[string]int{unproved: 1}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)\n+[^#\n]`).FindAllStringSubmatch(spec, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		sections[strings.ReplaceAll(anchor, " ", "-")] += 0
	}
	for _, file := range []string{"spec/vectors.json", "spec/scenarios.json"} {
		for _, m := range regexp.MustCompile(`"section": "([^"]+)"`).FindAllStringSubmatch(text(t, file), -1) {
			require.Contains(t, sections, m[1], "%s names a section without rules", file)
			sections[m[1]]++
		}
	}
	for section, proofs := range sections {
		assert.NotZero(t, proofs, "no vector and no scenario proves spec/protocol.md#%s", section)
	}
}

// TestBinaries_NoneCommitted finds programs that go build leaves in the folder of a module.
func TestBinaries_NoneCommitted(t *testing.T) {
	magic := regexp.MustCompile("^(?s:\x7fELF|MZ|\\xcf\\xfa\\xed\\xfe)")
	for _, file := range filesThat(t, "") {
		if filepath.Ext(file) == "" && !strings.HasPrefix(file, "bin/") {
			assert.False(t, magic.MatchString(text(t, file)), "%s: remove it", file)
		}
	}
}
