// Conformance plays the scenarios of spec/scenarios.json against an implementation of the protocol,
// and reports for each whether the other side complied. It uses only the wires of this library, so
// that it does not share the mistakes of any side.
//
// Read spec/scenarios.md first, then scenario.go, player.go and acts.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque/spec"
	_ "github.com/asterisque-go/asterisque/wire/wswire" // ws:// and wss://
)

const usage = `Conformance plays scenarios against an implementation of the protocol.

  conformance -dial URL       against one that listens
  conformance -listen URL     against one that dials in, again and again
  conformance -list           prints what there is

URL is tcp://127.0.0.1:0, tls://…, unix:///tmp/a.sock, ws://127.0.0.1:0/rpc or wss://…; with port 0 the system chooses.
What the other side has to offer, its fixture, is in spec/scenarios.md.

The exit status is 0 if nothing has failed, 1 if something has, 2 for wrong arguments.

`

// usageError is an error of the arguments.
type usageError struct{ error }

// flags are the arguments.
type flags struct {
	dial, listen, run, junit, without, file string
	ca, cert, key                           string
	list, tap, quiet                        bool
	parallel                                int
	patience                                time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		if errors.As(err, new(usageError)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func parse(args []string, stdout io.Writer) (f flags, err error) {
	set := flag.NewFlagSet("conformance", flag.ContinueOnError)
	set.SetOutput(io.Discard) // the caller prints errors
	set.StringVar(&f.dial, "dial", "", "connect to `URL` for each scenario")
	set.StringVar(&f.listen, "listen", "", "listen at `URL`, and take a connection for each scenario")
	set.StringVar(&f.run, "run", "", "only scenarios that `REGEXP` finds in \"section: name\"")
	set.BoolVar(&f.list, "list", false, "print the scenarios, and play none")
	set.BoolVar(&f.tap, "tap", false, "print TAP instead")
	set.BoolVar(&f.quiet, "quiet", false, "print only skipped and failed scenarios")
	set.StringVar(&f.junit, "junit", "", "write `FILE` in the format of JUnit as well")
	set.StringVar(&f.without, "without", "", "what the other side has not, as `NAMES` with commas: keys, health, …")
	set.StringVar(&f.file, "scenarios", "", "play those of `FILE` instead of spec/scenarios.json")
	set.IntVar(&f.parallel, "parallel", 16, "how many scenarios are played at once")
	set.DurationVar(&f.patience, "patience", patience, "how long the other side has for a step; what steps say about that grows in proportion")
	set.StringVar(&f.ca, "ca", "", "with TLS: trust the certificates of `FILE`")
	set.StringVar(&f.cert, "cert", "", "with TLS: the `FILE` with the own certificate")
	set.StringVar(&f.key, "key", "", "with TLS: the `FILE` with its key")
	err = set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return f, err
	}
	switch {
	case err != nil:
	case set.NArg() > 0:
		err = fmt.Errorf("%q is not a flag", set.Arg(0))
	case !f.list && (f.dial == "") == (f.listen == ""):
		err = errors.New("one of -dial, -listen and -list is needed")
	case f.parallel < 1:
		err = fmt.Errorf("-parallel: %d is not positive", f.parallel)
	case f.patience <= 0:
		err = fmt.Errorf("-patience: %v is not positive", f.patience)
	}
	return f, err
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	f, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return usageError{fmt.Errorf("%w; -h explains", err)}
	}
	file := spec.Scenarios
	if f.file != "" {
		if file, err = os.ReadFile(f.file); err != nil {
			return usageError{err}
		}
	}
	s, err := load(file)
	if err != nil {
		return fmt.Errorf("the scenarios: %w", err)
	}
	list, err := s.matching(f.run)
	if err != nil {
		return usageError{err}
	}
	if f.list {
		for _, sc := range list {
			fmt.Fprintf(stdout, "%-24s %s\n", sc.Section, sc.Name)
		}
		return nil
	}
	return f.play(ctx, s, list, stdout)
}

// play plays a list of scenarios.
func (f flags) play(ctx context.Context, s *suite, list []scenario, stdout io.Writer) error {
	from, err := f.peers(ctx, stdout)
	if err != nil {
		return err
	}
	defer from.close()
	var out printer = linePrinter{stdout, isTerminal(stdout), f.quiet}
	if f.tap {
		out = &tapPrinter{out: stdout}
	}
	begin := time.Now()
	out.begin(len(list))
	h := playOptions{connecting: f.dial != "", without: strings.Split(f.without, ","), parallel: f.parallel, patience: f.patience}
	all := playAll(ctx, s, list, from, h, out.tell)
	took := time.Since(begin)
	out.end(all, took)
	if f.junit != "" {
		if err := writeJUnit(f.junit, all, took); err != nil {
			return err
		}
	}
	if _, failed, _ := count(all); failed > 0 {
		return fmt.Errorf("%d of %d FAILED", failed, len(all))
	}
	return nil
}

// isTerminal reports whether the output is a terminal, without a request for no colors.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
