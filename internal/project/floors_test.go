package project

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/asterisque-go/asterisque"

// floors assigns every folder of the module, together with its subfolders, to a floor. A package
// imports only from floors below its own, and from its parent folder.
var floors = map[string]int{
	"internal/buffer":    -3,
	"internal/truncate":  -3,
	"internal/cborhead":  -2,
	"internal/native":    -2,
	"internal/boundlog":  -1,
	"internal/sizing":    -2,
	"internal/encodable": -1,
	"internal/fifo":      -1,
	"internal/ranking":   -1,
	"internal/path":      -1,
	"internal/histogram": -1, // the basement
	"internal/wait":      -1,
	"internal/sharing":   -2,
	"spec":               0,
	"codec":              0,
	"limits":             0,
	"priority":           0,
	"codec/classic":      1, // above codec/message
	"wire/certificate":   0,
	"wire/transport":     0,
	"wire":               1,
	"wire/classicwire":   2, // above codec/classic
	"internal/guard":     2,
	"internal/piping":    1, // does not import wire; pipe wraps it
	"internal/outbox":    2,
	"internal/carrier":   3,
	"internal/relay":     3,
	"pipe":               2,
	"stream":             3,
	".":                  4,
	"asterisquetest":     5,
	"debugpage":          5,
	"healthpage":         5,
	"examples":           6, // above pool
	"pool":               5,
	"internal/mutate":    5,
	"tools/stress":       5,
	"cmd":                5,
}

// forTests contains folders of packages that only tests import. They may import any package.
var forTests = []string{"internal/attack", "internal/callbench", "internal/fakeclock", "internal/flowmodel", "internal/leak", "internal/project", "internal/race", "internal/restart", "internal/flowtest", "internal/testkit", "internal/testtls", "internal/valuetest", "internal/vectors", "internal/weightest", "wire/wiretest"}

func TestFloors_ImportsGoDown(t *testing.T) {
	imports := importsByFolder(t)
	require.Contains(t, imports, ".")
	require.Contains(t, imports["."], "pipe", "the search finds all packages")
	for folder, targets := range imports {
		if _, ok := floor(folder); !ok && !isForTests(folder) {
			t.Errorf("%s has no floor: give it one here", name(folder))
		}
		for _, to := range targets {
			if err := look(folder, to); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFloors_FindUpwardImports(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{".", "pipe", ""},
		{"examples/greeting", ".", ""},
		{"wire/ws", "codec", ""},
		{"wire/ws", "wire", ""},
		{"priority", "internal/fifo", ""},
		{"wire/wiretest", "internal/leak", ""},
		{"pipe", ".", "pipe is on floor 2 and imports the root from floor 4"},
		{"limits", "wire", "limits is on floor 0 and imports wire from floor 1"},
		{"pipe", "internal/outbox", "pipe is on floor 2 and imports internal/outbox from floor 2"},
		{"codec", "limits", "codec is on floor 0 and imports limits from floor 0"},
		{"stream", "internal/leak", "stream imports internal/leak, which is for tests"},
		{"util", "codec", "util has no floor"},
	} {
		err := look(c.from, c.to)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// look returns an error unless a package in the folder from may import one in the folder to.
func look(from, to string) error {
	if isForTests(from) {
		return nil
	}
	if isForTests(to) && !(to == "wire/wiretest" && strings.HasPrefix(from, "examples/")) {
		// an example may show the test of a program
		return fmt.Errorf("%s imports %s, which is for tests", name(from), name(to))
	}
	f, ok := floor(from)
	if !ok {
		return fmt.Errorf("%s has no floor: give it one here", name(from))
	}
	below, ok := floor(to)
	if !ok {
		return fmt.Errorf("%s has no floor: give it one here", name(to))
	}
	if below < f || strings.HasPrefix(from, to+"/") {
		return nil
	}
	return fmt.Errorf("%s is on floor %d and imports %s from floor %d", name(from), f, name(to), below)
}

// floor returns the floor of a folder: its own, or that of the nearest one above it.
func floor(folder string) (int, bool) {
	for ; folder != "."; folder = path.Dir(folder) {
		if f, ok := floors[folder]; ok {
			return f, true
		}
		if path.Dir(folder) == "." {
			return 0, false // only the root's own package is on the root's floor
		}
	}
	return floors["."], true
}

func isForTests(folder string) bool {
	for _, f := range forTests {
		if folder == f || strings.HasPrefix(folder, f+"/") {
			return true
		}
	}
	return false
}

func name(folder string) string {
	if folder == "." {
		return "the root"
	}
	return folder
}

// importsByFolder returns the folders of the module that the files of each folder import, on any
// system and for any build tag, without tests.
func importsByFolder(t *testing.T) map[string][]string {
	imports := map[string][]string{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(file)
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		if _, ok := imports[folder]; !ok {
			imports[folder] = nil // a folder without imports counts too
		}
		for _, i := range tree.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if to == module {
				imports[folder] = append(imports[folder], ".")
			} else if within, ok := strings.CutPrefix(to, module+"/"); ok {
				imports[folder] = append(imports[folder], within)
			}
		}
		return nil
	}))
	return imports
}

// skip excludes folders outside of this module: hidden folders, test data and nested modules.
func skip(dir string) error {
	if dir == "." {
		return nil
	}
	if base := filepath.Base(dir); strings.HasPrefix(base, ".") || base == "testdata" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}
