// Fleet is a service with three replicas and a hundred agents without addresses, which find each
// other by their names in a cluster. Some of the agents can only dial out, to an exchange. All call
// each other all the time, while replicas are killed and started again, NATS fails and comes back,
// and wires are cut at random. At the end an audit of all calls verifies that none was lost, and
// that none ran twice.
//
// Read contract.go first, then replica.go and agent.go: both call by name, without any addresses.
// joining.go has the guarantees of the nodes, durable.go the retries of a call until it is
// answered, and exchange.go the policy of the exchange. ledger.go and journal.go record the events
// of each call, and audit.go compares them. The file show.go is the order of events, process.go
// starts and kills processes, and door.go is in front of them so that wires can be cut.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if os.Getenv(startedBy) != "" {
		ctx = started(ctx)
	}
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := o.flags()
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("%w; -h explains", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag; -h explains", flags.Arg(0))
	}
	if err := o.check(flags); err != nil {
		return err
	}
	forget, err := o.complete()
	if err != nil {
		return err
	}
	return errors.Join(runPart(ctx, &o, newScreen(stdout), stderr), forget())
}

// runPart runs one part, or all.
func runPart(ctx context.Context, o *options, sc *screen, stderr io.Writer) error {
	log := logger(stderr, slog.LevelWarn)
	switch o.part {
	case "nats":
		return runNATS(ctx, o, sc)
	case "replica":
		return runReplica(ctx, o, sc, log)
	case "exchange":
		return runExchange(ctx, o, sc, log)
	case "agents":
		return runAgents(ctx, o, sc, log)
	case "control":
		return runControl(ctx, o, sc, logger(stderr, slog.LevelError))
	}
	return runShow(ctx, o, sc, logger(stderr, slog.LevelError)) // an outage of NATS is expected
}

func logger(to io.Writer, least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: least}))
}
