// Exchange runs an exchange. Nodes that can only dial out connect to it, and reach each other by
// name, as well as the nodes of a cluster and of other exchanges. See package exchange.
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
	"strings"
	"syscall"
)

const usage = `Exchange connects nodes that can only dial out. It runs until it is interrupted.

  exchange                                           for nodes of this machine, with its NATS server
  exchange -listen tls://:5330 -policy FILE -cert FILE -key FILE -ca FILE
  exchange -alone -policy FILE                       without NATS

The policy has a rule a line, "from -> to": nodes that have proved the identity from may reach those
that have proved the identity to; "*" is every identity, that of nodes without proof too. The rest
of a line behind "#" is a comment. Without a policy no node may reach another one. A node proves
its identity by a certificate of -ca, as one of the names in the certificate.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		// errors of the package have that prefix, too
		fmt.Fprintln(os.Stderr, "exchange:", strings.TrimPrefix(err.Error(), "exchange: "))
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
	if err := o.check(); err != nil {
		return err
	}
	return serve(ctx, &o, stdout, slog.New(slog.NewTextHandler(stderr, nil)))
}
