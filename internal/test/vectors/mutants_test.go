package vectors

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

var every = flag.Bool("mutants", false, "run the mutants, and do not only apply them")

// mutant is this codec with one wrong decision: new replaces old.
type mutant struct {
	name     string // the section of the specification that it breaks, and its effect
	file     string
	old, new string
}

// all are the mutants.
func all() []mutant {
	return slices.Concat(encoding(), values(), places(), messages(), handshake(), parts(), metadata(), costs(), encoders(), integers())
}

// programs contains, for each package, the packages with tests of the vectors. A mutant of the
// package has to fail at least one of them.
var programs = map[string][]string{
	"internal/cborhead": {"codec/message", "internal/carrier"},
	"codec/message":     {"codec/message", "internal/carrier"},
	"internal/carrier":  {"internal/carrier"},
	"codec":             {"codec"},
}

func TestMutants_AreDistinct(t *testing.T) {
	there := slugs(t)
	names, texts := map[string]bool{}, map[string]string{}
	for _, m := range all() {
		if texts[m.file] == "" {
			texts[m.file] = read(t, m.file)
		}
		assert.False(t, names[m.name], "%s: there are two", m.name)
		names[m.name] = true
		section, _, ok := strings.Cut(m.name, ": ")
		require.True(t, ok, m.name)
		require.Contains(t, there, section)
		assert.Equal(t, 1, strings.Count(texts[m.file], m.old), "%s: %q is in %s so often", m.name, m.old, m.file)
		assert.NotEqual(t, m.old, m.new, m.name)
		require.Contains(t, programs, path.Dir(m.file), m.name)
	}
}

// Only the vectors count: other tests do not run, since other implementations do not have them.
func TestMutants_NoneSurvives(t *testing.T) {
	mutants := all()
	dir, file := t.TempDir(), overlay(t, mutants)
	if !*every {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "./codec", "./codec/message", "./internal/carrier").CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Skipf("%d mutants fit the code, and compile: -mutants runs them, which takes a minute", len(mutants))
	}
	for _, p := range []string{"codec", "codec/message", "internal/carrier"} {
		out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file, "-o", program(dir, p), "./"+p).CombinedOutput()
		require.NoError(t, err, "%s", out)
		out, err = run(t.Context(), dir, p, 0)
		require.NoError(t, err, "%s, as it is: %s", p, out)
		require.NotContains(t, string(out), "no tests to run")
	}
	var mu sync.Mutex
	var survivors []string // guarded by mu
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range mutants {
		g.Go(func() error {
			for _, p := range programs[path.Dir(m.file)] {
				if _, err := run(t.Context(), dir, p, i+1); err != nil {
					return nil
				}
			}
			mu.Lock()
			defer mu.Unlock()
			survivors = append(survivors, m.name)
			return nil
		})
	}
	require.NoError(t, g.Wait())
	slices.Sort(survivors)
	t.Logf("%d mutants", len(mutants))
	require.Empty(t, survivors, "%d survive:\n%s", len(survivors), strings.Join(survivors, "\n"))
}

func program(dir, pkg string) string { return filepath.Join(dir, path.Base(pkg)+".test") }

// run runs the tests of the vectors of a package, with the mutant of the given number; 0: without a
// mutant.
func run(ctx context.Context, dir, pkg string, number int) (out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program(dir, pkg), "-test.run", "Vectors", "-test.failfast")
	c.Dir, c.Env = filepath.FromSlash(pkg), append(os.Environ(), fmt.Sprintf("%s=%d", which, number))
	return c.CombinedOutput()
}
