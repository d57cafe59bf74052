// Stress repeatedly runs the tests of all modules on a busy machine: in random order, with
// different numbers of processors, with and without the race detector, beside busy loops.
//
//	go run ./tools/stress -for 1h                 # all packages of all modules
//	go run ./tools/stress -for 5m -run Resume .   # some tests of one package
//
// It lists each test that failed, how often, and the command that repeats it. Its exit code is 1 if
// any test failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// config has the values of the flags.
type config struct {
	length   time.Duration
	busy     int    // busy loops
	parallel int    // concurrent test binaries
	cpus     []int  // for -test.cpu
	race     []bool // for -race
	run      string // for -test.run
	timeout  time.Duration
	seed     uint64
	outputs  string   // the folder for the output of failed tests
	patterns []string // of packages; none: all of all modules
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is main with an exit code: 0 if no test failed, 1 if one did, 2 for all other errors.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	cfg, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var failures *failures
	if err == nil {
		failures, err = stress(ctx, cfg, out)
	}
	if err != nil {
		fmt.Fprintf(errs, "stress: %v\n", err)
		return 2
	}
	failures.print(out, cfg)
	if failures.count() > 0 {
		return 1
	}
	return 0
}

// parse reads the flags.
func parse(args []string, errs io.Writer) (cfg config, err error) {
	flags := flag.NewFlagSet("stress", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintln(errs, "usage: go run ./tools/stress [flags] [packages]\nIt runs tests again and again on a busy machine. Without packages it takes all of all modules.")
		flags.PrintDefaults()
	}
	flags.DurationVar(&cfg.length, "for", 10*time.Minute, "how long tests begin; those that run then are awaited")
	flags.IntVar(&cfg.busy, "busy", 2, "busy loops beside the tests")
	flags.IntVar(&cfg.parallel, "parallel", 2, "test binaries that run at once")
	cpus := flags.String("cpu", "1,2,4,16", "values of -test.cpu")
	race := flags.String("race", "both", "the race detector: on, off or both")
	flags.StringVar(&cfg.run, "run", "", "only tests that match, as for go test")
	flags.DurationVar(&cfg.timeout, "timeout", 40*time.Minute, "the limit for one run of a test binary")
	flags.Uint64Var(&cfg.seed, "seed", uint64(time.Now().UnixNano()), "decides order, processors and shuffles")
	flags.StringVar(&cfg.outputs, "outputs", "", "the folder for the output of failed runs (default: a new temporary one)")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.patterns = flags.Args()
	for text := range strings.SplitSeq(*cpus, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return cfg, fmt.Errorf("-cpu: %q is no number of processors: write -cpu 1,4", text)
		}
		cfg.cpus = append(cfg.cpus, n)
	}
	kinds := map[string][]bool{"on": {true}, "off": {false}, "both": {false, true}}
	if cfg.race = kinds[*race]; cfg.race == nil {
		return cfg, fmt.Errorf("-race: %q is none of on, off and both", *race)
	}
	switch {
	case cfg.length <= 0:
		return cfg, fmt.Errorf("-for: %v is no time to run: write -for 10m", cfg.length)
	case cfg.busy < 0:
		return cfg, fmt.Errorf("-busy: %d is less than 0", cfg.busy)
	case cfg.parallel < 1:
		return cfg, fmt.Errorf("-parallel: %d is less than 1", cfg.parallel)
	}
	return cfg, nil
}
