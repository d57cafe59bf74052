package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// loaded is a package without its tests, parsed and type-checked for this system.
type loaded struct {
	fset  *token.FileSet
	types *types.Package
	files []*ast.File
	info  *types.Info
}

// listed is the output of `go list` for a package.
type listed struct {
	Dir        string
	ImportPath string
	Export     string // the export data of the compiler
	GoFiles    []string
	DepOnly    bool
}

// load returns the packages in folders, in the same order. Imported packages come from the cache of
// the compiler, and their sources are not read.
func load(folders []string) ([]*loaded, error) {
	all, err := list(folders)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	byDir := make(map[string]listed)
	for _, l := range all {
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			byDir[l.Dir] = l
		}
	}
	var packages []*loaded
	for _, folder := range folders {
		dir, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		l, ok := byDir[dir]
		if !ok {
			return nil, fmt.Errorf("no package in %s", folder)
		}
		p, err := l.check(exports)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// list runs the go command for the packages in folders and for all their imports.
func list(folders []string) (all []listed, err error) {
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly"}
	for _, folder := range folders {
		dir, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		args = append(args, dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

// check parses and type-checks the package. exports contains the export data of the imported
// packages.
func (l listed) check(exports map[string]string) (*loaded, error) {
	p := &loaded{
		fset: token.NewFileSet(),
		info: &types.Info{Uses: make(map[*ast.Ident]types.Object)},
	}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	var err error
	p.types, err = conf.Check(l.ImportPath, p.fset, p.files, p.info)
	return p, err
}

// file returns the name of the file at pos, without its folder.
func (p *loaded) file(pos token.Pos) string {
	return filepath.Base(p.fset.Position(pos).Filename)
}
