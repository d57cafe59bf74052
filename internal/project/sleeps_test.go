package project

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A test that sleeps by the real clock is slow, and depends on the speed of the machine. In a
// bubble of synctest, time costs nothing.
func TestSleeps_AreExplained(t *testing.T) {
	folders := make(map[string]map[string]string)
	for _, file := range filesThat(t, ".go") {
		dir := filepath.Dir(file)
		if !strings.HasSuffix(file, "_test.go") && dir != "internal/testkit" {
			continue
		}
		if folders[dir] == nil {
			folders[dir] = make(map[string]string)
		}
		folders[dir][file] = text(t, file)
	}
	for _, sources := range folders {
		for _, at := range sleeps(t, sources) {
			t.Errorf("%s: a sleep outside synctest.Test needs a comment in its line or above: "+
				"which real thing it waits for, or that it is one of a bubble", at)
		}
	}
}

func TestSleeps_AreFound(t *testing.T) {
	for body, want := range map[string]int{
		"time.Sleep(1)":                                                            1,
		"<-time.After(1)":                                                          1,
		"for ; ; <-time.After(1) {\n}":                                             1,
		"for ; ; time.Sleep(1) {\n}":                                               1,
		"f := time.Sleep\nf(1)":                                                    1,
		"time.Sleep(1) // the socket's buffer":                                     0,
		"// the socket's buffer\ntime.Sleep(1)":                                    0,
		"// the socket's buffer\n\ntime.Sleep(1)":                                  1,
		"f() // the socket's buffer\ntime.Sleep(1)":                                1,
		"// the socket's buffer\nfor {\ntime.Sleep(1)\n}":                          1,
		"synctest.Test(t, func(t *testing.T) { time.Sleep(1) })":                   0,
		"synctest.Test(t, func(t *testing.T) { go func() { <-time.After(1) }() })": 0,
		"synctest.Test(t, func(t *testing.T) {})\ntime.Sleep(1)":                   1,
		"bubble(func() { time.Sleep(1) })":                                         0,
		"both(1, func() { time.Sleep(1) })":                                        0,
		"outside(func() { time.Sleep(1) })":                                        1,
		"select {\ncase <-time.After(1):\n}":                                       0,
		"select {\ncase <-c:\n<-time.After(1)\n}":                                  1,
	} {
		helpers := `package x

func bubble(do func()) { synctest.Test(nil, func(*testing.T) { do() }) }

func both(n int, do func()) { bubble(func() { do() }); bubble(do) }

func outside(do func()) { do(); synctest.Test(nil, func(*testing.T) { other() }) }
`
		source := "package x\n\nfunc f() {\n" + body + "\n}\n"
		found := sleeps(t, map[string]string{"x_test.go": source, "helpers_test.go": helpers})
		require.Len(t, found, want, body)
	}
}

// sleeps returns the places where the test files of a folder sleep, neither in a bubble nor with a
// comment in the same line or the line above.
func sleeps(t *testing.T, sources map[string]string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	files := make(map[string]*ast.File)
	for file, source := range sources {
		f, err := parser.ParseFile(fset, file, source, parser.ParseComments)
		require.NoError(t, err)
		files[file] = f
	}
	bubbles := bubbles(files)
	for file, f := range files {
		explained := explained(fset, f, sources[file])
		for _, pos := range sleepsOf(f, bubbles) {
			if line := fset.Position(pos).Line; !explained[line] {
				found = append(found, fmt.Sprintf("%s:%d", file, line))
			}
		}
	}
	return found
}

// sleepsOf returns the sleeps of f outside bubbles.
func sleepsOf(f *ast.File, bubbles map[string]bool) (found []token.Pos) {
	cases := make(map[ast.Node]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !isBubble(n, bubbles)
		case *ast.CommClause:
			if e, ok := n.Comm.(*ast.ExprStmt); ok {
				cases[e.X] = true
			}
		case ast.Expr:
			if isSleep(n) && !cases[n] {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// explained returns the lines with a comment at their end, and those after a comment line.
func explained(fset *token.FileSet, f *ast.File, source string) map[int]bool {
	lines := strings.Split(source, "\n")
	found := make(map[int]bool)
	for _, group := range f.Comments {
		line := fset.Position(group.Pos()).Line
		if strings.HasPrefix(strings.TrimSpace(lines[line-1]), "//") {
			found[fset.Position(group.End()).Line+1] = true
		} else {
			found[line] = true
		}
	}
	return found
}

// bubbles returns the functions that run their argument in a bubble, themselves or by another such
// function.
func bubbles(files map[string]*ast.File) map[string]bool {
	found := make(map[string]bool)
	for before := -1; before < len(found); {
		before = len(found)
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && runsInBubble(fn, found) {
					found[fn.Name.Name] = true
				}
			}
		}
	}
	return found
}

// runsInBubble reports whether fn uses a parameter of function type, and only in bubbles.
func runsInBubble(fn *ast.FuncDecl, bubbles map[string]bool) bool {
	given := make(map[string]bool)
	for _, p := range fn.Type.Params.List {
		if _, ok := p.Type.(*ast.FuncType); ok {
			for _, name := range p.Names {
				given[name.Name] = true
			}
		}
	}
	within, outside := 0, 0
	count := func(into *int, n ast.Node) {
		if id, ok := n.(*ast.Ident); ok && given[id.Name] {
			*into++
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isBubble(call, bubbles) {
			ast.Inspect(call, func(n ast.Node) bool { count(&within, n); return true })
			return false
		}
		count(&outside, n)
		return true
	})
	return within > 0 && outside == 0
}

func isBubble(call *ast.CallExpr, bubbles map[string]bool) bool {
	id, ok := call.Fun.(*ast.Ident)
	return isName(call.Fun, "synctest", "Test") || ok && bubbles[id.Name]
}

// isSleep reports whether e is time.Sleep or <-time.After().
func isSleep(e ast.Expr) bool {
	if isName(e, "time", "Sleep") {
		return true
	}
	u, ok := e.(*ast.UnaryExpr)
	if !ok || u.Op != token.ARROW {
		return false
	}
	call, ok := u.X.(*ast.CallExpr)
	return ok && isName(call.Fun, "time", "After")
}

// isName reports whether e is a given name of a package.
func isName(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && s.Sel.Name == name
}
