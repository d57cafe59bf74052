package asterisque_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	code     = regexp.MustCompile("(?s)```.*?```")
	goBlock  = regexp.MustCompile("(?s)```go\n(.*?)```")
	target   = regexp.MustCompile(`\]\(([^)]+)\)`)
	absolute = regexp.MustCompile(`^([a-z]+:|#)`)
)

func TestTheREADMEShowsTheExampleAsItIs(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(readme(t), -1)
	require.Len(t, blocks, 1)
	require.Equal(t, bodyOf(t, "example_test.go", "Example"), blocks[0][1])
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	for _, page := range []string{"README.md", "CHANGELOG.md", "docs/limits.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		links := target.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1)
		require.NotEmpty(t, links)
		for _, l := range links {
			if absolute.MatchString(l[1]) {
				continue
			}
			file, _, _ := strings.Cut(l[1], "#")
			_, err := os.Stat(filepath.Join(filepath.Dir(page), file))
			require.NoError(t, err, "%s: %s", page, l[0])
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(b)
}

// bodyOf returns what is between the braces of a function, moved to the left margin.
func bodyOf(t *testing.T, file, function string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	require.NoError(t, err)
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
			body := source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
			return strings.TrimPrefix(strings.ReplaceAll(string(body), "\n\t", "\n"), "\n")
		}
	}
	t.Fatalf("%s has no function %s", file, function)
	return ""
}
