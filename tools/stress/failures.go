package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

// failures are the tests that have failed.
type failures struct {
	out     io.Writer
	outputs string // the folder for the output of failed runs

	mu    sync.Mutex
	runs  map[string]int // of test binaries, by package; guarded by mu, as all below
	tests map[string]*testFailure
}

// testFailure is a test that has failed.
type testFailure struct {
	testRun        // the first one
	test    string // its name; unnamed if the binary failed otherwise
	count   int
	output  string // the file with the output of the first run
}

// unnamed is the name of a failure outside of all tests, as of a process that was killed.
const unnamed = "(no test)"

// note counts an attempt, and its failures if err is not nil.
func (f *failures) note(a testRun, printed []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs, f.tests = make(map[string]int), make(map[string]*testFailure)
	}
	f.runs[a.pkg]++
	if err == nil {
		return
	}
	for _, test := range failed(printed) {
		key := a.pkg + " " + test
		if f.tests[key] == nil {
			f.tests[key] = &testFailure{testRun: a, test: test, output: f.keep(printed)}
			fmt.Fprintf(f.out, "%s fails: %v, see %s\n", key, err, f.tests[key].output)
		}
		f.tests[key].count++
	}
}

// keep writes the output of a failed run to a file, and returns its name.
func (f *failures) keep(printed []byte) string {
	name := filepath.Join(f.outputs, fmt.Sprintf("%d.txt", len(f.tests)))
	if err := os.WriteFile(name, printed, 0o666); err != nil {
		return err.Error()
	}
	return name
}

var (
	failLine  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	panicLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
	running   = regexp.MustCompile(`(?m)^\s+(?:running tests:\s+)?(Test\w+)(?:/\S*)? \(\d`)
)

// failed returns the names of the failed tests in the output of a run.
func failed(printed []byte) (tests []string) {
	for _, line := range failLine.FindAllSubmatch(printed, -1) {
		tests = append(tests, string(line[1]))
	}
	if len(tests) == 0 && panicLine.Match(printed) { // a timeout names the running tests
		for _, line := range running.FindAllSubmatch(printed, -1) {
			tests = append(tests, string(line[1]))
		}
	}
	if len(tests) == 0 {
		return []string{unnamed}
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// count returns how many tests have failed.
func (f *failures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.tests)
}

// print lists the failures, the most frequent first.
func (f *failures) print(out io.Writer, cfg config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := 0
	for _, n := range f.runs {
		runs += n
	}
	fmt.Fprintf(out, "%d runs of %d packages: %d tests have failed\n", runs, len(f.runs), len(f.tests))
	for _, t := range slices.SortedFunc(maps.Values(f.tests), func(a, b *testFailure) int { return cmp.Compare(b.count, a.count) }) {
		run := "^" + t.test + "$"
		if t.test == unnamed {
			run = cfg.run
		}
		fmt.Fprintf(out, "\n%s of %s: %d of %d runs\n  %s\n  beside %d busy loops; output: %s\n",
			t.test, t.pkg, t.count, f.runs[t.pkg], t.repeat(run), cfg.busy, t.output)
	}
}
