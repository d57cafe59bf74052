// Greeting is a first look at asterisque: two nodes, one connection, and calls both ways over it.
// By default both nodes are in this process, with a TCP connection between them; with -listen and
// -dial each is a process of its own.
//
// Read contract.go first, then server.go and client.go.
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

	"github.com/asterisque-go/asterisque/wire"
)

const usage = `Greeting shows two programs that call each other over one connection.

  greeting                       both programs in this process
  greeting -listen ADDR [-once]  the one that listens, until it is interrupted
  greeting -dial ADDR            the one that connects

ADDR is host:port or a URL: 127.0.0.1:5330, tcp://[::1]:5330, unix:/tmp/greeting.sock

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "greeting:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("greeting", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	listen := flags.String("listen", "", "serve at `ADDR` until interrupted; with port 0 the system chooses")
	dial := flags.String("dial", "", "connect to `ADDR`, where another greeting listens")
	once := flags.Bool("once", false, "with -listen: exit when the first session has ended")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	}
	t := &teller{begin: time.Now(), out: stdout}
	switch {
	case err != nil:
		return fmt.Errorf("%w; -h explains", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag; -h explains", flags.Arg(0))
	case *listen != "" && *dial != "":
		return errors.New("-listen and -dial are for one process each; -h explains")
	case *once && *listen == "":
		return errors.New("-once goes with -listen; -h explains")
	case *listen != "":
		return runServer(ctx, address(*listen), *once, t)
	case *dial != "":
		return visit(ctx, address(*dial), t)
	default:
		return runBoth(ctx, t)
	}
}

func runServer(ctx context.Context, url string, once bool, t *teller) error {
	ln, err := wire.Listen(ctx, url, wire.Options{})
	if err != nil {
		return err
	}
	return serve(ctx, ln, once, t)
}

// runBoth runs both sides in this process.
func runBoth(ctx context.Context, t *teller) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		return err
	}
	served := make(chan error)
	go func() { served <- serve(ctx, ln, true, t) }()
	err = visit(ctx, ln.URL(), t)
	if err != nil {
		stop() // the server may still wait for a client
	}
	return errors.Join(err, <-served)
}

// address makes a URL of host:port, and leaves a URL as it is.
func address(s string) string {
	if strings.Contains(s, "://") || strings.HasPrefix(s, "unix:") {
		return s
	}
	return "tcp://" + s
}
