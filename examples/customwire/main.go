// Customwire is a Wire made by hand, and a session over it: two programs on the two ends of a
// serial line, or of a pair of named pipes. By default both are in this process; with -in and -out
// each is a process of its own.
//
// Read wire.go first: it is the whole Wire, and describes the obligations of each of its five
// methods. wire_test.go is the one line that tests it.
//
// # The short way
//
// A transport that is a stream of bytes needs none of this: wire.FromConn makes a Wire of any
// io.ReadWriteCloser, with the same lengths before the frames (so both ends of this program could
// use it instead), and it is faster. A Wire of your own is for transports that have frames already:
// messages, packets, shared memory.
//
// # Further steps
//
// A name: wire.Register("line", t), where t is a wire.Transport with Dial and Listen, and every
// node can Dial and ListenAndServe "line:///dev/ttyS0".
//
// Speed: a session uses more if the Wire has it. A wire.BatchWriter takes many frames in one piece
// of memory, as they are sent over a stream; a wire.TryWriter writes the part that does not block,
// which saves a switch between goroutines for every small call; wire.Buffered reports frames that
// have arrived already. Package wire has a table of all of these, and the suite in package wiretest
// tests those that the Wire has.
//
// Faults: wiretest.Faulty makes any Wire slow, cuts it, stalls it, and shows the reaction of your
// program.
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

	"github.com/asterisque-go/asterisque/wire"
)

const usage = `Customwire shows a session over a Wire made by hand, and the frames that it carries.

  customwire                              both programs in this process
  customwire -answer -in PATH -out PATH   the one that answers
  customwire -in PATH -out PATH           the one that calls

PATH is a named pipe, or a serial line in raw mode; then -in and -out are the same. For example:

  mkfifo there back
  customwire -answer -in there -out back &
  customwire -in back -out there

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "customwire:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("customwire", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	in := flags.String("in", "", "read from `PATH`")
	out := flags.String("out", "", "write to `PATH`")
	answers := flags.Bool("answer", false, "with -in and -out: be the one that answers")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil
	}
	stdout = &together{out: stdout}
	switch {
	case err != nil:
		return fmt.Errorf("%w; -h explains", err)
	case flags.NArg() > 0:
		return fmt.Errorf("%q is not a flag; -h explains", flags.Arg(0))
	case (*in == "") != (*out == ""):
		return errors.New("-in and -out go together; -h explains")
	case *in == "" && *answers:
		return errors.New("-answer goes with -in and -out; -h explains")
	case *in == "":
		return runBoth(ctx, stdout)
	}
	w, err := openUntil(ctx, *in, *out, *answers)
	if err != nil {
		return err
	}
	if *answers {
		return answer(ctx, tap{w, "caller", stdout})
	}
	return call(ctx, tap{w, "answerer", stdout}, stdout)
}

// runBoth runs both sides in this process.
func runBoth(ctx context.Context, stdout io.Writer) error {
	a, b := nullModem()
	answered := make(chan error)
	go func() { answered <- answer(ctx, tap{b, "caller", stdout}) }() // ends with the session
	err := call(ctx, tap{a, "answerer", stdout}, stdout)
	return errors.Join(err, <-answered)
}

// nullModem returns two wires over two crossed streams.
func nullModem() (a, b wire.Wire) {
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	return newLineWire("null modem", fromB, toB), newLineWire("null modem", fromA, toA)
}

// openUntil is open, but ends with ctx. The goroutine that waits for the other end then remains:
// only that end can wake it.
func openUntil(ctx context.Context, in, out string, answers bool) (wire.Wire, error) {
	type result struct {
		w   wire.Wire
		err error
	}
	opened := make(chan result)
	go func() { // ends when open has returned
		w, err := open(in, out, answers)
		select {
		case opened <- result{w, err}:
		case <-ctx.Done():
			if err == nil {
				w.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.w, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open makes a Wire of two paths. Opening a named pipe waits for the other end, so the two sides
// open them in opposite order.
func open(in, out string, answers bool) (w wire.Wire, err error) {
	var from, to *os.File
	if answers {
		if from, err = os.Open(in); err == nil {
			to, err = os.OpenFile(out, os.O_WRONLY, 0)
		}
	} else {
		if to, err = os.OpenFile(out, os.O_WRONLY, 0); err == nil {
			from, err = os.Open(in)
		}
	}
	if err != nil {
		from.Close() // Close of nil is a harmless error
		to.Close()
		return nil, err
	}
	return newLineWire(in, from, to), nil
}
