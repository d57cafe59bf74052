// Telemetry shares one session between a sensor, an upload and urgent commands, over a link that is
// too slow for all of them. The commands go first, the sensor's readings are thinned, and dropped
// when they are too old, the upload gets the rest; and every reading that was left out is accounted
// for. Both sides are in this process, with a throttled TCP connection between them.
//
// Read contract.go first, then client.go and server.go; link.go limits the rate.
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

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

const usage = `Telemetry shows who gets what of a link that is too slow: a sensor, an upload and urgent commands share one session.

  telemetry [-seconds N] [-mbit N]

Try -mbit 2, too slow even for half of the readings, and -mbit 100, where the upload has the most of it.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("telemetry", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	seconds := flags.Float64("seconds", 6, "for how many seconds `N` all three send")
	mbit := flags.Float64("mbit", 8, "how many Mbit/s `N` the link carries")
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
	case !(*seconds >= 0.1 && *seconds <= 3600): // NaN is neither
		return fmt.Errorf("-seconds: %v is outside 0.1..3600", *seconds)
	case !(*mbit >= 1 && *mbit <= 1000):
		return fmt.Errorf("-mbit: %v is outside 1..1000", *mbit)
	}
	return serve(ctx, stdout, *mbit*1e6/8, time.Duration(*seconds*float64(time.Second)))
}

// serve runs the server, and a client that connects to it over a link of that rate, in bytes a
// second.
func serve(ctx context.Context, stdout io.Writer, rate float64, last time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		return err
	}
	var s server
	node := asterisque.NewNode(
		asterisque.WithID("server"),
		asterisque.WithService(s.service()),
	)
	defer node.Close()
	served := make(chan error)
	go func() { served <- node.Serve(ctx, ln) }() // ends with ctx
	err = visit(ctx, strings.TrimPrefix(ln.URL(), "tcp://"), rate, last, &report{out: stdout, server: &s})
	stop()
	return errors.Join(err, <-served)
}

// visit runs the client, and reports.
func visit(ctx context.Context, address string, rate float64, last time.Duration, r *report) error {
	w, err := dialSlow(ctx, address, rate)
	if err != nil {
		return err
	}
	r.drops = new(drops)
	node := asterisque.NewNode(asterisque.WithID("client"), asterisque.WithHooks(asterisque.Hooks{Dropped: r.drops.note}))
	defer node.Close()
	sess, err := node.Attach(ctx, w)
	if err != nil {
		return err
	}
	r.client, r.begin = &client{sess: sess}, time.Now()
	if err := watch(ctx, last, r); err != nil {
		return err
	}
	if err := r.sum(); err != nil {
		return err
	}
	return node.Shutdown(ctx)
}

// watch prints a line each second while the client runs.
func watch(ctx context.Context, last time.Duration, r *report) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	ended := make(chan error, 1)
	go func() { ended <- r.client.run(ctx, last) }() // ends with its work, or with ctx
	r.head()
	for {
		select {
		case <-tick.C:
			r.print()
		case err := <-ended:
			return err
		}
	}
}
