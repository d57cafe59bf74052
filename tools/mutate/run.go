package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memory is the limit of the memory of tests, in KiB, because a mutant may allocate without bound.
const memory = 4 << 20

// runner tries mutants.
type runner struct {
	all   []folder
	pace  map[string]func() (pace, error) // by package
	slack time.Duration
}

func newRunner(ctx context.Context, all []folder, slack time.Duration) *runner {
	r := &runner{all: all, pace: map[string]func() (pace, error){}, slack: slack}
	for _, f := range all {
		r.pace[f.path] = sync.OnceValues(func() (pace, error) { return measure(ctx, f) })
	}
	return r
}

// result is a line of the journal.
type result struct {
	mutant
	Seed    uint64   `json:"seed"`
	Verdict verdict  `json:"verdict"`
	Suite   string   `json:"suite,omitempty"` // the package with failed tests
	Tests   []string `json:"tests,omitempty"` // the failed tests
	Output  string   `json:"output,omitempty"`
	Seconds float64  `json:"seconds"`
}

// try runs the tests that should detect m, until some of them fail.
func (r *runner) try(ctx context.Context, m *mutant) (result, error) {
	begin := time.Now()
	res := result{mutant: *m, Verdict: survived}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return res, err
	}
	for _, suite := range suites(r.all, m.folder.path) {
		p, err := r.pace[suite.path]()
		if err != nil {
			return res, err
		}
		binary := filepath.Join(dir, "tests")
		if out, err := compile(ctx, suite, binary, overlay); err != nil {
			res.Verdict, res.Output = skipped, last(out)
			break
		}
		for _, flag := range p.parts() {
			out, err := run(ctx, suite, binary, 2*p.all+r.slack, flag)
			if err != nil {
				res.Verdict, res.Suite, res.Tests, res.Output = judge(out), suite.path, failed(out), telling(out)
				break
			}
		}
		if res.Verdict != survived {
			break
		}
	}
	res.Seconds = time.Since(begin).Round(time.Second / 10).Seconds()
	return res, ctx.Err()
}

// overlay writes into dir the overlay for the compiler, and returns its file.
func (m *mutant) overlay(dir string) (string, error) {
	changed, file := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, m.source, 0o600); err != nil {
		return "", err
	}
	original := filepath.Join(m.folder.dir, filepath.Base(m.File))
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, text, 0o600)
}

func compile(ctx context.Context, suite folder, binary, overlay string) (string, error) {
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", binary, ".")
	c.Dir = suite.dir
	out, err := c.CombinedOutput()
	return string(out), err
}

func run(ctx context.Context, suite folder, binary string, limit time.Duration, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -d "$0"; exec "$@"`, strconv.Itoa(memory),
		binary, "-test.failfast", "-test.short", "-test.timeout=" + limit.String()}, flags...)...)
	c.Dir = suite.dir
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		out = append(out, "\npanic: test timed out after its limit, and did not end by itself\n"...)
	}
	return string(out), err
}

// last returns the end of a text.
func last(text string) string { return text[max(0, len(text)-2000):] }

// telling returns the part of an output that describes the failure.
func telling(output string) string {
	i := len(output)
	for _, mark := range []string{"--- FAIL", "panic: ", "fatal error: ", "Error Trace:"} {
		if at := strings.Index(output, mark); at >= 0 {
			i = min(i, at)
		}
	}
	return output[i:min(len(output), i+3000)]
}
