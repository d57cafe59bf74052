// Overload shows the effects of more calls than a server can run: the number of answers, the
// duration of calls, the success of urgent ones, the number of refusals, and the memory, for each
// possible reaction of the library. Server and clients are in this process, over TCP.
//
// Read reaction.go for the reactions, load.go for the load, and show.go for the order of events.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `Overload offers a server 2 and 10 times the calls that it can run, and prints for each of its reactions what became of them.

  overload [-seconds N] [-strict]

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	seconds := flags.Float64("seconds", 15, "how many seconds `N` the show takes, about")
	strict := flags.Bool("strict", false, "fail if a figure is missed, which a busy machine may do too")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w; -h explains", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag; -h explains", flags.Arg(0))
	case !(*seconds >= 0.5 && *seconds <= 3600): // NaN is neither
		return fmt.Errorf("-seconds: %v is outside 0.5..3600", *seconds)
	}
	s := &show{out: stdout, url: "tcp://127.0.0.1:0", measure: time.Duration(*seconds / parts * float64(time.Second))}
	if err := s.run(ctx); err != nil {
		return err
	}
	if missed := s.judge(); *strict && len(missed) > 0 {
		return fmt.Errorf("figures missed: %d", len(missed))
	}
	return nil
}
