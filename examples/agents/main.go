// Agents is a controller with three servers, and fifty agents that can only dial out. Each agent
// keeps a session with every server, by mutual TLS and a pool.Pool, and calls any healthy one; the
// controller calls the agents back over these sessions, runs commands on them, follows their output
// and cancels some. Meanwhile the servers are restarted one after the other, and no call fails.
//
// Read contract.go first, then agent.go, server.go, roster.go and controller.go. The file show.go
// is the order of events; separate.go runs a server or an agent as a program of its own.
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
)

const usage = `Agents runs three servers and many agents, restarts the servers, and ends with 1 if a call failed.

  agents [-for DURATION] [-agents N]                         all in this process
  agents -write-certs DIR [-agents N]                        write certificates for what follows
  agents -server ADDR -cert FILE -key FILE -ca FILE          a server, until it is interrupted
  agents -agent -servers A,B,C -cert FILE -key FILE -ca FILE an agent, until it is interrupted

Addresses are host:port. The certificates of -write-certs are for servers on this machine.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	howLong                     time.Duration
	agents                      int
	writeCerts, server, servers string
	agent                       bool
	files                       files
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("agents", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	flags.DurationVar(&o.howLong, "for", 7*time.Second, "how long it takes, a `DURATION` such as 20s; restarts take their time")
	flags.IntVar(&o.agents, "agents", 50, "how many agents `N` there are")
	flags.StringVar(&o.writeCerts, "write-certs", "", "write certificates to the folder `DIR`, and end")
	flags.StringVar(&o.server, "server", "", "serve at `ADDR`")
	flags.BoolVar(&o.agent, "agent", false, "be an agent of -servers")
	flags.StringVar(&o.servers, "servers", "", "with -agent: where the servers are, `A,B,C`")
	flags.StringVar(&o.files.cert, "cert", "", "the certificate of this side, a PEM `FILE`")
	flags.StringVar(&o.files.key, "key", "", "its key, a PEM `FILE`")
	flags.StringVar(&o.files.ca, "ca", "", "the certificate of the authority of all, a PEM `FILE`")
	return flags
}

// check returns an error for invalid flags.
func (o *options) check() error {
	separate := o.server != "" || o.agent
	named := o.files.cert != "" && o.files.key != "" && o.files.ca != ""
	switch {
	case o.howLong < time.Second || o.howLong > 24*time.Hour:
		return fmt.Errorf("-for: %v is outside 1s..24h", o.howLong)
	case o.agents < 1 || o.agents > 1000:
		return fmt.Errorf("-agents: %d is outside 1..1000", o.agents)
	case o.server != "" && o.agent:
		return errors.New("-server and -agent are for one process each; -h explains")
	case separate && o.writeCerts != "":
		return errors.New("-write-certs goes without -server and -agent; -h explains")
	case o.agent != (o.servers != ""):
		return errors.New("-agent and -servers go together; -h explains")
	case separate && !named:
		return errors.New("-cert, -key and -ca are needed: -write-certs makes some")
	case !separate && o.files != files{}:
		return errors.New("-cert, -key and -ca go with -server or -agent; -h explains")
	}
	return nil
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
	if o.writeCerts != "" {
		return writeSet(o.writeCerts, o.agents)
	}
	sc := newScreen(stdout)
	if o.server == "" && !o.agent {
		return runAll(ctx, &o, sc, logger(stderr, slog.LevelError))
	}
	log := logger(stderr, slog.LevelWarn) // refused peers, with the reason
	secure, err := o.files.config()
	switch {
	case err != nil:
		return err
	case o.agent:
		return runAgent(ctx, o.servers, secure, sc, log)
	}
	return runServer(ctx, o.server, secure, sc, log)
}

func logger(to io.Writer, least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: least}))
}

// runAll runs the show, and stops all that it has started.
func runAll(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	s, err := newShow(context.WithoutCancel(ctx), o.howLong, o.agents, sc, log)
	if err != nil {
		if s != nil {
			s.close()
		}
		return err
	}
	following, stop := context.WithCancel(context.Background())
	drawn := make(chan struct{})
	go func() { // ends with stop
		defer close(drawn)
		sc.follow(following)
	}()
	err = s.run(ctx)
	stop()
	<-drawn
	err = errors.Join(err, s.close())
	sc.summary()
	return errors.Join(err, s.tally.err())
}
