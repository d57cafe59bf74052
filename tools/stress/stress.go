package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// testRun is one run of a test binary.
type testRun struct {
	binary
	cpu     int
	shuffle int64
}

// stress builds the binaries, and runs them until the time is up or ctx ends.
func stress(ctx context.Context, cfg config, out io.Writer) (*failures, error) {
	into, err := os.MkdirTemp("", "stress")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(into)
	if cfg.outputs == "" {
		cfg.outputs, err = os.MkdirTemp("", "stress-outputs")
		defer func() { os.Remove(cfg.outputs) }() // unless there are some
	} else {
		err = os.MkdirAll(cfg.outputs, 0o777)
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	binaries, err := build(ctx, cfg, into)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d test binaries were built in %v; seed %d, %d busy loops\n", len(binaries), time.Since(begin).Round(time.Second), cfg.seed, cfg.busy)
	stop := spin(cfg.busy)
	defer stop()
	found := &failures{out: out, outputs: cfg.outputs}
	attempts := draw(ctx, cfg, binaries)
	var all sync.WaitGroup
	for range cfg.parallel {
		all.Go(func() {
			for a := range attempts {
				printed, err := a.run(ctx, cfg)
				if ctx.Err() == nil {
					found.note(a, printed, err)
				}
			}
		})
	}
	all.Wait()
	return found, nil
}

// draw sends attempts until the time is up or ctx ends: all binaries in random order, repeatedly.
func draw(ctx context.Context, cfg config, binaries []binary) <-chan testRun {
	attempts := make(chan testRun)
	go func() { // ends with ctx
		defer close(attempts)
		ctx, cancel := context.WithTimeout(ctx, cfg.length)
		defer cancel()
		random := rand.New(rand.NewPCG(cfg.seed, 0))
		for {
			for _, i := range random.Perm(len(binaries)) {
				a := testRun{binary: binaries[i], cpu: cfg.cpus[random.IntN(len(cfg.cpus))], shuffle: random.Int64()}
				select {
				case attempts <- a:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return attempts
}

// run runs the binary once, and returns its output.
func (a testRun) run(ctx context.Context, cfg config) ([]byte, error) {
	args := []string{
		"-test.cpu", strconv.Itoa(a.cpu), "-test.shuffle", strconv.FormatInt(a.shuffle, 10),
		"-test.timeout", cfg.timeout.String(),
	}
	if cfg.run != "" {
		args = append(args, "-test.run", cfg.run)
	}
	cmd := exec.CommandContext(ctx, a.path, args...)
	cmd.Dir = a.dir
	return cmd.CombinedOutput()
}

// repeat returns the command that repeats the run.
func (a testRun) repeat(run string) string {
	race := ""
	if a.race {
		race = " -race"
	}
	if dir, err := filepath.Rel(".", a.dir); err == nil {
		a.dir = dir
	}
	return fmt.Sprintf("(cd %s && go test%s -count=1 -run '%s' -cpu %d -shuffle %d .)", a.dir, race, run, a.cpu, a.shuffle)
}

// spin keeps n processors busy until stop.
func spin(n int) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() { over.Store(true); all.Wait() }
}
