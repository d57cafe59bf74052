package project

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// insideFolders contains the folders covered by docs/inside.md, which describes their locks,
// goroutines and drawings one by one.
var insideFolders = []string{".", "internal/carrier", "internal/outbox", "internal/path", "internal/piping", "limits", "priority"}

// source is the declarations of the library, without tests.
type source struct {
	files map[string][]string // that declare a name, such as f, T, T.method, p.f or p.T.method
	// of insideFolders: the type of each lock, the function that starts each goroutine, and the
	// drawing in the comment of each type that has one
	locks, starts []declared
	drawings      map[declared]string
}

// declared is a declaration in a file.
type declared struct{ name, file string }

// sources reads the library.
func sources(t *testing.T) *source {
	t.Helper()
	s := &source{files: map[string][]string{}, drawings: map[declared]string{}}
	for _, file := range filesThat(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		s.add(filepath.ToSlash(file), tree)
	}
	return s
}

func (s *source) add(file string, tree *ast.File) {
	inside := slices.Contains(insideFolders, path.Dir(file))
	declare := func(name string) {
		for _, n := range []string{name, tree.Name.Name + "." + name} {
			s.files[n] = append(s.files[n], file)
		}
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := nameOfFunc(d)
			declare(name)
			if inside && startsGoroutine(d) {
				s.starts = append(s.starts, declared{name, file})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				for _, name := range namesOf(spec) {
					declare(name)
				}
				if typ, ok := spec.(*ast.TypeSpec); ok && inside {
					s.addType(typ, d.Doc, file)
				}
			}
		}
	}
}

// addType records the locks of a type, and the drawing in its comment.
func (s *source) addType(typ *ast.TypeSpec, doc *ast.CommentGroup, file string) {
	at := declared{typ.Name.Name, file}
	if fields, ok := typ.Type.(*ast.StructType); ok {
		for _, f := range fields.Fields.List {
			if of, ok := f.Type.(*ast.SelectorExpr); ok && strings.HasSuffix(of.Sel.Name, "Mutex") {
				s.locks = append(s.locks, at)
			}
		}
	}
	if typ.Doc != nil {
		doc = typ.Doc
	}
	if d := drawingIn(doc.Text()); d != "" {
		s.drawings[at] = d
	}
}

// drawingIn returns the lines of code in a comment, if they contain an arrow.
func drawingIn(comment string) string {
	var lines []string
	for line := range strings.SplitSeq(comment, "\n") {
		if line == "" || strings.HasPrefix(line, "\t") {
			lines = append(lines, strings.TrimPrefix(line, "\t"))
		}
	}
	d := strings.Trim(strings.Join(lines, "\n"), "\n")
	if !strings.ContainsAny(d, ">►▶") {
		return ""
	}
	return d
}

// namesOf returns the names declared by a declaration outside functions, with fields and methods.
func namesOf(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			names = append(names, n.Name)
		}
	case *ast.TypeSpec:
		names = append(names, spec.Name.Name)
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				for _, name := range f.Names {
					names = append(names, spec.Name.Name+"."+name.Name)
				}
			}
			return true
		})
	}
	return names
}

// nameOfFunc returns the name of a function, with its receiver type.
func nameOfFunc(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + d.Name.Name
		}
	}
}

// startsGoroutine reports whether a function starts a goroutine, or causes a later start.
func startsGoroutine(d *ast.FuncDecl) (starts bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			starts = starts || ok && (f.Sel.Name == "AfterFunc" || f.Sel.Name == "Go")
		}
		return true
	})
	return starts
}
