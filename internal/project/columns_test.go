package project

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// columns is the maximum width of prose, in comments including the code before them. A tab counts
// as four.
const columns = 100

func TestColumns_OfComments(t *testing.T) {
	for _, file := range filesThat(t, ".go") {
		for _, wide := range wideComments(t, file, text(t, file)) {
			t.Error(wide)
		}
	}
}

func TestColumns_OfMarkdown(t *testing.T) {
	for _, file := range filesThat(t, ".md") {
		for _, wide := range wideProse(file, text(t, file)) {
			t.Error(wide)
		}
	}
}

func TestColumns_FindWideComments(t *testing.T) {
	words := strings.Repeat("word ", 20) // 100 columns with the space at its end
	link := "https://example.com/" + strings.Repeat("x", 100)
	for comment, want := range map[string]int{
		"// " + words[:97]:                                   0,
		"// " + words[:98]:                                   1,
		"\t// " + words[:93]:                                 0,
		"\t// " + words[:94]:                                 1,
		"// " + strings.Repeat("ä", 97):                      0,
		"/*\n" + words + "x\n" + words + "x\n*/":             2,
		"var a = 1 // " + words[:90]:                         1,
		"var a = `" + words + "x`":                           0,
		"// " + link:                                         0,
		"//\t- " + link:                                      0,
		"//   - " + link:                                     0,
		"// [x]: " + link:                                    0,
		"// See " + link:                                     1,
		"//\tcode(" + words + ")":                            0,
		"//          a table  " + words:                      0,
		"//go:generate " + words:                             0,
		"func Example() {\n// Output:\n// " + words + "x\n}": 0,
		"func example() {\n// Output:\n// " + words + "x\n}": 1,
	} {
		require.Len(t, wideComments(t, "x_test.go", "package x\n\n"+comment+"\n"), want, comment)
	}
}

func TestColumns_FindWideProse(t *testing.T) {
	words := strings.Repeat("word ", 20)
	link := "https://example.com/" + strings.Repeat("x", 100)
	for prose, want := range map[string]int{
		words:                                      0,
		words + "xx":                               1,
		"| " + words + "|":                         0,
		"```\n" + words + "x\n```\n":               0,
		"~~~\n```\n" + words + "x\n~~~\n":          0,
		"```\n```\n" + words + "x":                 1,
		"1. a\n\n   ```\n" + words + "x\n   ```\n": 0,
		"    " + words:                             1, // code has fences here
		link:                                       0,
		"- <" + link + ">":                         0,
		"![a picture](" + link + ")":               0,
		"- [a link](" + link + "),":                0,
		"[x]: " + link:                             0,
		"see [a link](" + link + ")":               1,
		"## " + words:                              1,
	} {
		require.Len(t, wideProse("x.md", prose), want, prose)
	}
}

// wideComments returns the comment lines of a Go file that are wider than columns, except for code,
// links, directives, and the output of examples.
func wideComments(t *testing.T, file, source string) (wide []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	require.NoError(t, err)
	lines := strings.Split(source, "\n")
	outputs := outputs(f)
	for _, group := range f.Comments {
		for _, c := range group.List {
			if outputs[group] || directive.MatchString(c.Text) {
				continue
			}
			begin, end := fset.Position(c.Pos()).Line, fset.Position(c.End()).Line
			for n := begin; n <= end; n++ {
				if !free(lines[n-1]) {
					wide = appendWide(wide, file, n, lines[n-1])
				}
			}
		}
	}
	return wide
}

// outputs returns the comments of the examples of f that contain the output.
func outputs(f *ast.File) map[*ast.CommentGroup]bool {
	found := make(map[*ast.CommentGroup]bool)
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		for _, g := range f.Comments {
			within := fn.Pos() < g.Pos() && g.End() < fn.End()
			if within && strings.Contains(strings.ToLower(g.Text()), "output:") {
				found[g] = true
			}
		}
	}
	return found
}

// wideProse returns the lines of a Markdown file that are wider than columns, except for tables,
// code and links.
func wideProse(file, source string) (wide []string) {
	fence := ""
	for n, line := range strings.Split(source, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case fence != "" && strings.HasPrefix(bare, fence):
			fence = ""
		case fence != "":
		case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
			fence = bare[:3]
		case strings.HasPrefix(bare, "|"), aLink(bare):
		default:
			wide = appendWide(wide, file, n+1, line)
		}
	}
	return wide
}

var directive = regexp.MustCompile(`^//[a-z0-9]+:[a-z0-9]`)

// drawn is the beginning of a line of a table or a drawing.
const drawn = "          "

// free reports whether a comment line may have any width: code, a table, or only a link.
func free(line string) bool {
	comment := strings.TrimSpace(line)
	bare, ok := strings.CutPrefix(comment, "//")
	return ok && (strings.HasPrefix(bare, "\t") || strings.HasPrefix(bare, drawn) || aLink(strings.TrimSpace(bare)))
}

var (
	url  = regexp.MustCompile(`^(- |\[[^]]*]: )?<?https?://\S+$`)
	link = regexp.MustCompile(`^(- )?!?\[[^]]*]\(\S+$`)
)

// aLink reports whether a line consists of a link, possibly as an item of a list.
func aLink(line string) bool { return url.MatchString(line) || link.MatchString(line) }

func appendWide(wide []string, file string, n int, line string) []string {
	width := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, " "), "\t", "    "))
	if width <= columns {
		return wide
	}
	return append(wide, fmt.Sprintf("%s:%d: %d columns: %s", file, n, width, strings.TrimSpace(line)))
}
