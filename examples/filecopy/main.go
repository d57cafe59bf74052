// Filecopy copies files and folders over a session. It shows the transfer of bytes as a stream, and
// the continuation of an interrupted copy. By default it makes up some files and copies them within
// this process, over a TCP connection; with -listen and -dial the two sides are programs of their
// own.
//
// Read contract.go first, then sender.go and receiver.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

const usage = `Filecopy copies files and folders from one program to another.

  filecopy [-size MIB]              both programs in this process, with files that are made up
  filecopy -listen ADDR -dir DIR    the one that receives, until it is interrupted
  filecopy -dial ADDR -send PATH    the one that sends

ADDR is host:port or a URL: 127.0.0.1:5330, tcp://[::1]:5330, unix:/tmp/filecopy.sock
Whoever can connect to ADDR can write files below DIR, as many as fit.

An interrupted copy leaves NAME.part. When the same is sent again, it goes on from there.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "filecopy:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("filecopy", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	listen := flags.String("listen", "", "receive at `ADDR` until interrupted; with port 0 the system chooses")
	dir := flags.String("dir", "", "with -listen: the folder `DIR` that files go to; it is made if need be")
	dial := flags.String("dial", "", "connect to `ADDR`, where another filecopy listens")
	send := flags.String("send", "", "with -dial: the file or folder `PATH` to send")
	size := flags.Int64("size", 64, "without -listen and -dial: how many `MIB` to make up")
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
	case *listen != "" && *dial != "":
		return errors.New("-listen and -dial are for one process each; -h explains")
	case (*listen != "") != (*dir != ""):
		return errors.New("-listen and -dir go together; -h explains")
	case (*dial != "") != (*send != ""):
		return errors.New("-dial and -send go together; -h explains")
	case *size < 1 || *size > 64<<10:
		return fmt.Errorf("-size: %d MiB are outside 1..65536", *size)
	case *listen != "":
		return receiveAt(ctx, address(*listen), *dir, stdout, stderr)
	case *dial != "":
		return sendTo(ctx, address(*dial), *send, stdout, stderr)
	default:
		return copyHere(ctx, *size<<20, stdout, stderr)
	}
}

// receiveAt receives files from all peers that connect until ctx ends.
func receiveAt(ctx context.Context, url, dir string, stdout, stderr io.Writer) error {
	ln, err := wire.Listen(ctx, url, wire.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "listens at %s, and writes into %s\n", ln.URL(), dir)
	return receiveFrom(ctx, ln, dir, stdout, stderr)
}

func receiveFrom(ctx context.Context, ln wire.Listener, dir string, stdout, stderr io.Writer) error {
	defer ln.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := newReceiver(root, log.New(stdout, "", log.Ltime))
	node := asterisque.NewNode(asterisque.WithID("receiver"), asterisque.WithService(r.service()), asterisque.WithLogger(warnings(stderr)))
	defer node.Close()
	return node.Serve(ctx, ln)
}

// sendTo sends the file or folder at path to the receiver at url.
func sendTo(ctx context.Context, url, path string, stdout, stderr io.Writer) error {
	src, err := openSource(path)
	if err != nil {
		return err
	}
	defer src.root.Close()
	for _, name := range src.skipped {
		fmt.Fprintf(stderr, "filecopy: %q is left out: it is neither a file nor a folder\n", name)
	}
	p := newProgress(stdout, src.size)
	node := asterisque.NewNode(asterisque.WithID("sender"), asterisque.WithLogger(warnings(stderr)), asterisque.WithHooks(asterisque.Hooks{LimitChanged: p.onState}))
	defer node.Close()
	sess, err := node.Dial(ctx, url)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = src.send(ctx, sess, p)
	p.stop()
	if err != nil {
		return err
	}
	p.summary(time.Since(begin))
	return node.Shutdown(ctx)
}

// warnings returns a logger for unexpected events.
func warnings(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// address makes a URL of host:port, and leaves a URL as it is.
func address(s string) string {
	if strings.Contains(s, "://") || strings.HasPrefix(s, "unix:") {
		return s
	}
	return "tcp://" + s
}
