package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// length is the number of lines of a file or a function, and its place.
type length struct {
	lines int
	where string
}

// lengths are the lengths of some files and of their functions, shortest first.
type lengths struct{ files, functions []length }

// lines measures all Go files under root, in all modules: the library and the tests separately.
func lines(root string) (library, tests lengths, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			return tests.add(path)
		case strings.HasSuffix(path, ".go"):
			return library.add(path)
		}
		return nil
	})
	for _, l := range []*lengths{&library, &tests} {
		slices.SortFunc(l.files, shorter)
		slices.SortFunc(l.functions, shorter)
	}
	return library, tests, err
}

func shorter(a, b length) int {
	return cmp.Or(cmp.Compare(a.lines, b.lines), cmp.Compare(a.where, b.where))
}

// add measures a file and the functions that it declares, from their first line to their last.
func (l *lengths) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	l.files = append(l.files, length{bytes.Count(text, []byte("\n")), path})
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		begin, end := fset.Position(fn.Pos()), fset.Position(fn.End())
		l.functions = append(l.functions, length{
			lines: end.Line - begin.Line + 1,
			where: fmt.Sprintf("%s:%d %s", path, begin.Line, fn.Name.Name),
		})
	}
	return nil
}

// part returns the length that a part of all does not exceed: half of them, or nine tenths.
func part(sorted []length, part float64) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(part*float64(len(sorted)-1))].lines
}
