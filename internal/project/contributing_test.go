package project

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var quoted = regexp.MustCompile("`([a-z]+)`")

func TestContributing_NamesAllChecks(t *testing.T) {
	_, rest, ok := strings.Cut(text(t, ".ci/run"), "readonly steps='\n")
	require.True(t, ok)
	list, _, ok := strings.Cut(rest, "'\n")
	require.True(t, ok)
	var there []string
	for line := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		name, _, _ := strings.Cut(line, " ")
		there = append(there, name)
	}

	_, rest, ok = strings.Cut(text(t, "CONTRIBUTING.md"), "| step | seconds | what it checks |\n| --- | ---: | --- |\n")
	require.True(t, ok)
	told, _, ok := strings.Cut(rest, "\n\n")
	require.True(t, ok)
	var named []string
	for row := range strings.SplitSeq(told, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range quoted.FindAllStringSubmatch(cell, -1) {
			named = append(named, name[1])
		}
	}
	require.Equal(t, there, named, "in the order of .ci/run list")
}
