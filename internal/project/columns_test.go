package project

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// columns is the maximum width of a line of prose, with the code before a comment. A tab counts as
// four.
const columns = 100

var (
	// code, tables and directives
	drawn = regexp.MustCompile(`^\s*(//(\t|          |[a-z0-9]+:[a-z0-9])|\|)`)
	fence = regexp.MustCompile("(?ms)^ *(```.*?```|~~~.*?~~~)")
	// aLink is a line that consists of a link, possibly as an item of a list.
	aLink = regexp.MustCompile(`^[\s/]*(- )?(\[[^]]*]: )?(<?https?://|!?\[[^]]*]\()\S+$`)
)

func wide(line string) bool {
	width := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, " "), "\t", "    "))
	return width > columns && !drawn.MatchString(line) && !aLink.MatchString(line)
}

func TestColumns_Comments(t *testing.T) {
	for _, file := range filesThat(t, ".go") {
		source := text(t, file)
		set, lines := token.NewFileSet(), strings.Split(source, "\n")
		tree, err := parser.ParseFile(set, file, source, parser.ParseComments)
		require.NoError(t, err)
		for _, group := range tree.Comments {
			if strings.Contains(strings.ToLower(group.Text()), "output:") {
				continue // of an example
			}
			for n := set.Position(group.Pos()).Line; n <= set.Position(group.End()).Line; n++ {
				assert.False(t, wide(lines[n-1]), "%s:%d is wider than %d columns", file, n, columns)
			}
		}
	}
}

func TestColumns_Markdown(t *testing.T) {
	for _, file := range filesThat(t, ".md") {
		for line := range strings.SplitSeq(fence.ReplaceAllString(text(t, file), ""), "\n") {
			assert.False(t, wide(line), "%s is wider than %d columns: %s", file, columns, line)
		}
	}
}

func TestColumns_FindWideLines(t *testing.T) {
	words, link := strings.Repeat("word ", 20), "https://example.com/"+strings.Repeat("x", 100)
	for line, want := range map[string]bool{
		"// " + words[:97]: false, "// " + words[:98]: true, "\t// " + words[:93]: false, "\t// " + words[:94]: true,
		strings.Repeat("ä", 100): false, "//\tcode(" + words + ")": false, "//go:generate " + words: false,
		"| " + words + "|": false, "// - " + link: false, "[x]: " + link: false, "see [a link](" + link + ")": true,
	} {
		require.Equal(t, want, wide(line), line)
	}
}
