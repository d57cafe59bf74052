package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// module is the import path of the root package.
const module = "github.com/asterisque-go/asterisque"

// changed contains the packages to mutate, together with their subpackages.
var changed = []string{".", "pipe", "stream", "internal", "limits", "priority", "codec"}

// blackBox is the folder of the black-box tests of the root.
const blackBox = "test"

// forTests contains the packages used only by tests and by developers of this project. Their
// mutants need not be detected.
var forTests = []string{
	"internal/test/attack", "internal/test/callbench", "internal/test/fakeclock", "internal/test/flowmodel", "internal/test/leak",
	"tools/mutate", "internal/project", "internal/test/race", "internal/test/restart",
	"internal/test/flowtest", "internal/test/testkit", "internal/test/testtls", "internal/test/weightest",
}

// folder is a package of the module.
type folder struct {
	path    string // from the root of the module: ".", "pipe", "internal/outbox"
	dir     string
	files   []string
	imports []string // paths, of its tests, too
	tested  bool     // it has tests
}

// listed is what `go list` says of a package.
type listed struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// folders returns the packages to mutate, the lowest first.
func folders() ([]folder, error) {
	out, err := exec.Command("go", "list", "-json", module+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []folder
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		if f := l.folder(); f.counts() {
			list = append(list, f)
		}
	}
}

func (l listed) folder() folder {
	f := folder{path: within(l.ImportPath), dir: l.Dir, files: l.GoFiles}
	f.tested = len(l.TestGoFiles)+len(l.XTestGoFiles) > 0
	for _, i := range slices.Concat(l.Imports, l.TestImports, l.XTestImports) {
		if i == module || strings.HasPrefix(i, module+"/") {
			f.imports = append(f.imports, within(i))
		}
	}
	return f
}

// within returns the path of a package relative to the module.
func within(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func (f folder) counts() bool {
	if slices.Contains(forTests, f.path) {
		return false
	}
	top, _, _ := strings.Cut(f.path, "/")
	return top == blackBox || slices.Contains(changed, top)
}

// suites returns the packages with tests that should detect a change of the package at p: its own
// tests, then those of its importers, and those of the root last.
func suites(all []folder, p string) []folder {
	var own, importers, root []folder
	for _, f := range all {
		switch {
		case !f.tested:
		case f.path == p:
			own = append(own, f)
		case f.path == ".", strings.HasPrefix(f.path, blackBox+"/"):
			root = append(root, f)
		case slices.Contains(f.imports, p):
			importers = append(importers, f)
		}
	}
	return slices.Concat(own, importers, root)
}

// file returns the path of a file of f relative to the module.
func (f folder) file(name string) string { return path.Join(f.path, name) }
