package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// binary is the test binary of a package.
type binary struct {
	pkg  string // its import path
	dir  string // its folder, in which the tests run
	path string // of the binary
	race bool
}

// build builds the test binaries of all packages that have tests, into a folder.
func build(ctx context.Context, cfg config, into string) ([]binary, error) {
	found, err := packages(ctx, cfg.patterns)
	if err != nil {
		return nil, err
	}
	var binaries []binary
	for _, race := range cfg.race {
		for _, b := range found {
			b.race, b.path = race, filepath.Join(into, fmt.Sprintf("%d.test", len(binaries)))
			binaries = append(binaries, b)
		}
	}
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no package of %v has tests", cfg.patterns)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(cfg.parallel)
	for _, b := range binaries {
		all.Go(func() error {
			args := []string{"test", "-c", "-o", b.path}
			if b.race {
				args = append(args, "-race")
			}
			_, err := goCommand(ctx, b.dir, append(args, ".")...)
			return err
		})
	}
	return binaries, all.Wait()
}

// packages returns the packages with tests: those that the patterns name, or all of all modules.
func packages(ctx context.Context, patterns []string) (found []binary, err error) {
	dirs := []string{"."}
	if len(patterns) == 0 {
		list, err := goCommand(ctx, ".", "list", "-m", "-f", "{{.Dir}}")
		if err != nil {
			return nil, err
		}
		dirs, patterns = strings.Fields(list), []string{"./..."}
	}
	for _, dir := range dirs {
		const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"
		list, err := goCommand(ctx, dir, append([]string{"list", "-f", format}, patterns...)...)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			if pkg, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				found = append(found, binary{pkg: pkg, dir: dir})
			}
		}
	}
	return found, nil
}

// goCommand runs the go command in a folder, and returns its output.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, errs.Bytes())
	}
	return string(out), nil
}
