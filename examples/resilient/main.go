// Resilient shows a session that outlives its connections: a client calls a server all the time,
// and between the two a proxy cuts the connection, stalls it, loses bytes silently, and refuses new
// ones. No call is lost, and none runs twice.
//
// Read server.go and client.go first: they contain nothing about reconnecting except the options of
// their nodes. trouble.go has the faults, table.go the output.
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
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

const usage = `Resilient calls a server through a bad connection, with a line for everything that goes wrong, and ends with 1 if a call was lost or ran twice.

  resilient [-for DURATION]

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "resilient:", err)
		os.Exit(1)
	}
}

// The options of both nodes. The times are short, to make the effects visible: by default a Ping is
// sent after 15 seconds of silence, and a peer is considered lost after 45.
var lasting = []asterisque.Option{
	asterisque.WithTimeouts(asterisque.Timeouts{Ping: 50 * time.Millisecond, Silence: 250 * time.Millisecond}),
	asterisque.WithResume(asterisque.Resume{For: time.Minute}),
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("resilient", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	howLong := flags.Duration("for", 20*time.Second, "how long it takes, a `DURATION` such as 90s or 1h")
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
	case *howLong < time.Second || *howLong > 7*24*time.Hour:
		return fmt.Errorf("-for: %v is outside 1s..168h", *howLong)
	}
	return show(ctx, *howLong, &table{out: stdout, begin: time.Now()}, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})))
}

// show connects a server and a client, and injects faults until the time is over.
func show(ctx context.Context, howLong time.Duration, t *table, log *slog.Logger) error {
	options := append([]asterisque.Option{asterisque.WithLogger(log)}, lasting...)
	srv := new(server)
	there := asterisque.NewNode(append(options, asterisque.WithService(srv.service()))...)
	defer there.Close()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		return err
	}
	go there.Serve(ctx, ln) // ends with the node
	proxy, err := wiretest.NewProxy(ln.URL()[len("tcp://"):], wiretest.Faults{})
	if err != nil {
		return err
	}
	defer proxy.Close()

	here := asterisque.NewNode(options...)
	defer here.Close()
	c := newClient()
	conn, err := here.Connect(ctx, "tcp://"+proxy.Addr(), asterisque.ReconnectConfig{First: 10 * time.Millisecond, Most: 200 * time.Millisecond, OnState: c.changed})
	if err != nil {
		return err
	}
	defer conn.Close()
	t.head()
	over := c.call(ctx, conn)
	interrupted := makeTrouble(ctx, proxy, howLong, func(event string) { t.line(event, c) })
	t.line("the end", c)
	err = over()
	t.summary(c, srv)
	switch {
	case interrupted != nil:
		return interrupted
	case err != nil:
		return err
	case srv.doubled.Load() > 0 || srv.skipped.Load() > 0 || c.made.Load() != c.answered.Load():
		return errors.New("calls were lost or doubled")
	}
	return nil
}
