// Reverse makes a machine that accepts no connections serve HTTP: it dials out, and a public node
// forwards visitors through the session. By default the machine, the public node and a visitor are
// in this process, with TCP connections between them; with -public and -behind each is a program of
// its own.
//
// Read machine.go first, then public.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

const usage = `Reverse lets a machine serve HTTP that can only dial out.

  reverse [-size MIB]                         all in this process, with a visitor
  reverse -public ADDR -visitors HOST:PORT    the public node, until it is interrupted
  reverse -behind ADDR [-name N] [-dir DIR]   the machine behind NAT, until it is interrupted

ADDR is host:port or a URL: 127.0.0.1:5330, tcp://[::1]:5330, unix:/tmp/reverse.sock
Visitors find the machine at http://HOST:PORT/N/. Whoever can connect to ADDR can register one.

`

// mostMiB is the largest download.
const mostMiB = 64 << 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reverse:", err)
		os.Exit(1)
	}
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("reverse", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints errors
	public := flags.String("public", "", "accept machines at `ADDR`; with port 0 the system chooses")
	visitors := flags.String("visitors", "127.0.0.1:0", "with -public: accept visitors at `HOST:PORT`")
	behind := flags.String("behind", "", "connect to `ADDR`, where another reverse is public")
	name := flags.String("name", "hermit", "with -behind: the `NAME` of the machine")
	dir := flags.String("dir", "", "with -behind: serve the files of the folder `DIR`")
	size := flags.Int("size", 64, "without -public and -behind: how many `MIB` the visitor downloads")
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
	case *public != "" && *behind != "":
		return errors.New("-public and -behind are for one process each; -h explains")
	case *size < 1 || *size > mostMiB:
		return fmt.Errorf("-size: %d MiB are outside 1..%d", *size, mostMiB)
	case *public != "":
		return runPublic(ctx, address(*public), *visitors, t)
	case *behind != "":
		return runMachine(ctx, address(*behind), *name, *dir, t)
	default:
		fmt.Fprint(stdout, picture)
		return runAll(ctx, *size, t)
	}
}

// runPublic runs a public node.
func runPublic(ctx context.Context, url, visitors string, t *teller) error {
	g, ln, front, err := listen(ctx, url, visitors, t)
	if err != nil {
		return err
	}
	t.tell("public", "accepts machines at %s", ln.URL())
	t.tell("public", "accepts visitors at %s", g.address)
	return g.serve(ctx, ln, front)
}

// runMachine runs a machine that serves the files of a folder, or its pages if there is none.
func runMachine(ctx context.Context, url, name, dir string, t *teller) error {
	m := &machine{name: name, pages: pages(name), t: t}
	m.ready = func(at string) { t.tell("machine", "serves visitors at %s", at) }
	if dir != "" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		m.pages = http.FileServerFS(root.FS())
	}
	return m.serve(ctx, url)
}

// listen returns a gateway, and the listeners for machines and visitors.
func listen(ctx context.Context, url, visitors string, t *teller) (*gateway, wire.Listener, net.Listener, error) {
	ln, err := wire.Listen(ctx, url, wire.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	front, err := net.Listen("tcp", visitors)
	if err != nil {
		ln.Close()
		return nil, nil, nil, err
	}
	return newGateway(fmt.Sprintf("http://%s/", front.Addr()), t), ln, front, nil
}

// runAll runs both nodes in this process, and a visitor.
func runAll(ctx context.Context, size int, t *teller) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ln, front, err := listen(ctx, "tcp://127.0.0.1:0", "127.0.0.1:0", t)
	if err != nil {
		return err
	}
	public := make(chan error, 1)
	go func() { public <- g.serve(ctx, ln, front) }()
	err = visitMachine(ctx, ln.URL(), size, t)
	stop()
	return errors.Join(err, <-public)
}

// visitMachine runs a machine that connects to the public node at url, and visits it, also after it
// has left.
func visitMachine(ctx context.Context, url string, size int, t *teller) error {
	inside, leave := context.WithCancel(ctx)
	defer leave()
	ready, left := make(chan string, 1), make(chan error, 1)
	m := &machine{name: "hermit", pages: pages("hermit"), t: t, ready: func(at string) { ready <- at }}
	go func() { left <- m.serve(inside, url) }()
	select {
	case err := <-left:
		return err
	case at := <-ready:
		v := newVisitor(at, t)
		err := v.visit(ctx, size)
		leave()
		if err = errors.Join(err, <-left); err != nil {
			return err
		}
		return v.knockInVain(ctx)
	}
}

// address makes a URL of host:port, and leaves a URL as it is.
func address(s string) string {
	if strings.Contains(s, "://") || strings.HasPrefix(s, "unix:") {
		return s
	}
	return "tcp://" + s
}
