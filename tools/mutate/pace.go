package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// quick is the longest duration of the tests that run before the slower ones. Most mutants fail in
// the quick tests.
const quick = 200 * time.Millisecond

// pace is the duration of the tests of a package without a change.
type pace struct {
	all  time.Duration
	slow []string // the tests that take longer than quick
}

// parts returns the flags that select the tests of a package, in the order in which they run.
func (p pace) parts() []string {
	if len(p.slow) == 0 {
		return []string{"-test.run=."}
	}
	slow := "^(" + strings.Join(p.slow, "|") + ")$"
	return []string{"-test.skip=" + slow, "-test.run=" + slow}
}

// measure runs the tests of a package without a change.
func measure(ctx context.Context, suite folder) (pace, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return pace{}, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "tests")
	if out, err := compile(ctx, suite, binary, ""); err != nil {
		return pace{}, fmt.Errorf("%s does not compile: %w\n%s", suite.path, err, out)
	}
	begin := time.Now()
	out, err := run(ctx, suite, binary, 5*time.Minute, "-test.v")
	if err != nil {
		return pace{}, fmt.Errorf("the tests of %s fail without a change: %w\n%s", suite.path, err, last(out))
	}
	return paceOf(out, time.Since(begin)), nil
}

var passes = regexp.MustCompile(`(?m)^--- PASS: (Test\S+) \((\S+)\)`)

// paceOf reads the output of tests with the given total duration.
func paceOf(output string, took time.Duration) pace {
	p := pace{all: took}
	for _, m := range passes.FindAllStringSubmatch(output, -1) {
		if d, err := time.ParseDuration(m[2]); err == nil && d > quick {
			p.slow = append(p.slow, m[1])
		}
	}
	return p
}
