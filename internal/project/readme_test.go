package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	code     = regexp.MustCompile("(?s)```.*?```")
	goBlock  = regexp.MustCompile("(?s)```go\n(.*?)```")
	target   = regexp.MustCompile(`\]\(([^)]+)\)`)
	absolute = regexp.MustCompile(`^([a-z]+:|#)`)
)

func TestREADME_ShowsExamples(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(text(t, "README.md"), -1)
	require.Len(t, blocks, 3)
	require.Equal(t, bodyOf(t, "example_test.go", "Example"), blocks[0][1])
	require.Equal(t, bodyOf(t, "pool/example_test.go", "Example"), blocks[1][1])
	require.Equal(t, bodyOf(t, "cluster/example_test.go", "Example"), blocks[2][1])
	shown := strings.ReplaceAll(text(t, "README.md"), "\n\t", "\n")
	require.Contains(t, shown, bodyOf(t, "pool/example_test.go", "listen"))
}

func TestLinks_LeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range filesThat(t, ".md") {
		for _, l := range target.FindAllStringSubmatch(code.ReplaceAllString(text(t, page), ""), -1) {
			if absolute.MatchString(l[1]) {
				continue
			}
			file, _, _ := strings.Cut(l[1], "#")
			_, err := os.Stat(filepath.Join(filepath.Dir(page), file))
			assert.NoError(t, err, "%s: %s", page, l[0])
			links++
		}
	}
	require.Greater(t, links, 50, "the search finds the links")
}

// bodyOf returns the body of a function without its indentation.
func bodyOf(t *testing.T, file, function string) string {
	t.Helper()
	source := text(t, file)
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	require.NoError(t, err)
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == function {
			body := source[set.Position(f.Body.Lbrace).Offset+1 : set.Position(f.Body.Rbrace).Offset]
			return strings.TrimPrefix(strings.ReplaceAll(body, "\n\t", "\n"), "\n")
		}
	}
	t.Fatalf("%s has no function %s", file, function)
	return ""
}
