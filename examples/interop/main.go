// Interop checks that two programs understand each other: one of them runs a matrix of calls over a
// session with the other one, and reports the outcome of each. The other one may be this program,
// over any wire, or the peer in another language in the subfolder: peer.mjs, for Node.js.
//
// Read contract.go first, then matrix.go and cases.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/asterisque-go/asterisque"
)

const usage = `Interop runs a matrix of calls between two programs, and checks each.

  interop                                 both programs in this process, over each scheme in turn
  interop -listen URL [-once]             the one that listens, until it is interrupted
  interop -dial URL                       the one that connects, and makes the calls
  interop -fixture -listen URL            what the program conformance plays scenarios against
  interop -fixture -dial URL              the same, connecting again and again

URL is tcp://127.0.0.1:0, tls://…, unix:///tmp/interop.sock, ws://127.0.0.1:0/rpc, wss://…, quic://…, smux://…, smux+tls://…, nats://127.0.0.1:4222/localhost, nats+tls://… or classic://…; port 0 lets the
system choose. With TLS, the side that listens makes up a certificate and writes it to the file of -cert, and the one that connects trusts it.

The exit status is 0 if all is well, 1 if something failed, 2 for wrong arguments.

`

// usageError is an error of the arguments.
type usageError struct{ error }

// flags are the arguments.
type flags struct {
	listen, dial, codec, cert string
	once, fixture, patient    bool
	calls                     int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		var u usageError
		if errors.As(err, &u) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	f, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return usageError{fmt.Errorf("%w; -h explains", err)}
	case f.dial != "" && f.fixture:
		return runFixture(ctx, f)
	case f.listen != "":
		return runServer(ctx, f, stdout)
	case f.dial != "":
		return runClient(ctx, f, stdout)
	default:
		return runAll(ctx, f, schemes, stdout)
	}
}

// parse returns the values of the arguments, or flag.ErrHelp after it has printed the help.
func parse(args []string, stdout io.Writer) (f flags, err error) {
	set := flag.NewFlagSet("interop", flag.ContinueOnError)
	set.SetOutput(io.Discard) // the caller prints errors
	names := strings.Join(slices.Sorted(maps.Keys(codecs)), ", ")
	set.StringVar(&f.listen, "listen", "", "serve at `URL` until interrupted")
	set.BoolVar(&f.once, "once", false, "with -listen: exit when the first session has ended")
	set.StringVar(&f.dial, "dial", "", "connect to `URL`, and run the matrix")
	set.BoolVar(&f.fixture, "fixture", false, "be the side that the program conformance plays its scenarios against; with -dial: connect again and again")
	set.BoolVar(&f.patient, "patient", false, "with -fixture: give up nothing within minutes, for a machine that is busy")
	set.StringVar(&f.codec, "codec", "", "the value codec `NAME`: "+names+"; without it the other side chooses, cbor being the first that is offered, and over classic:// classic-messagepack")
	set.StringVar(&f.cert, "cert", "", "with TLS: the `FILE` with the certificate that was made up")
	set.IntVar(&f.calls, "calls", 100_000, "how many calls the case of many calls makes")
	err = set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return f, err
	}
	_, known := codecs[f.codec]
	url := f.listen + f.dial
	scheme, _, _ := strings.Cut(url, ":")
	switch {
	case err != nil:
	case set.NArg() > 0:
		err = fmt.Errorf("%q is not a flag", set.Arg(0))
	case f.listen != "" && f.dial != "":
		err = errors.New("-listen and -dial are for one process each")
	case f.once && f.listen == "":
		err = errors.New("-once goes with -listen")
	case f.fixture && f.listen == "" && f.dial == "":
		err = errors.New("-fixture goes with -listen or -dial")
	case f.patient && !f.fixture:
		err = errors.New("-patient goes with -fixture")
	case f.codec != "" && !known:
		err = fmt.Errorf("-codec: %q is none of %s", f.codec, names)
	case url != "" && !carries(scheme, f.codec):
		err = errors.New("-codec classic-messagepack and classic-simple go with classic:// URLs, and no others do")
	case f.cert != "" && f.listen == "" && f.dial == "":
		err = errors.New("-cert goes with -listen or -dial")
	case f.calls < 1:
		err = fmt.Errorf("-calls: %d is not positive", f.calls)
	}
	return f, err
}

func runServer(ctx context.Context, f flags, stdout io.Writer) error {
	cfg, _, certificate, err := selfMade()
	if err != nil {
		return err
	}
	if f.cert != "" {
		if err := os.WriteFile(f.cert, certificate, 0o644); err != nil {
			return err
		}
	}
	var more []asterisque.Option
	if f.fixture {
		more = fixtureOptions(f.patient)
	}
	s, err := listen(ctx, f.listen, f.codec, cfg, stdout, more...)
	if err != nil {
		return err
	}
	return s.serve(ctx, f.once)
}

func runClient(ctx context.Context, f flags, stdout io.Writer) error {
	cfg, err := trustingFile(f.cert)
	if err != nil {
		return err
	}
	failed, err := visit(ctx, f.dial, f.codec, f.calls, cfg, func(r result) { r.print(stdout) })
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d FAILED", failed)
	}
	fmt.Fprintln(stdout, "all ok")
	return nil
}
