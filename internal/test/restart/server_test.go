//go:build unix

package restart

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// The test program is a server, and runs no tests, if the variable serverVariable is set: to the
// URL to listen at beside other servers, or to inherited.
const (
	serverVariable = "RESTART_TEST_SERVER"
	inherited      = "inherited"
)

// work takes the given number of milliseconds, and returns the id of its process.
var work = asterisque.Func[int, int](10, "work")

// count sends received values back, and returns the id of its process.
var count = asterisque.Stream[struct{}, int, int, int](11, "count")

// serve runs a server until SIGTERM, shuts it down gracefully, and exits with 0 on success. On
// SIGUSR1 it starts its successor first. It prints "ready" and its process id on its standard
// output, and ends with its standard input, so that no process outlives the test.
func serve(url string) {
	// as the shell does, which becomes the program
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	go func() { // ends with the process
		io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGUSR1)
	ln, err := listen(url)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n := newServer()
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(context.Background(), ln) }() // ends with the node
	fmt.Println("ready", os.Getpid())
	if <-told == syscall.SIGUSR1 {
		err = handOver(ln)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, failed := range []error{err, n.Shutdown(ctx), <-ended} {
		if failed != nil {
			fmt.Println(failed)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

func listen(url string) (wire.Listener, error) {
	if url == inherited {
		return wire.Inherited("rpc", wire.Options{})
	}
	return wire.Listen(context.Background(), url, wire.Options{ReusePort: true})
}

func newServer() *asterisque.Node {
	svc := asterisque.NewService()
	work.Handle(svc, func(ctx context.Context, ms int) (int, error) {
		if ms > 0 {
			select {
			case <-time.After(time.Duration(ms) * time.Millisecond):
			case <-ctx.Done():
			}
		}
		return os.Getpid(), ctx.Err()
	})
	count.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[int, int]) (int, error) {
		for {
			i, err := p.Recv(ctx)
			if err == io.EOF {
				return os.Getpid(), nil
			}
			if err != nil {
				return 0, err
			}
			if err := p.Send(ctx, i); err != nil {
				return 0, err
			}
		}
	})
	return asterisque.NewNode(asterisque.WithService(svc))
}

// handOver starts a server at the socket of ln, as documented for wire.Inherited.
func handOver(ln wire.Listener) error {
	file, err := wire.ListenerFile(ln)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"="+inherited, "LISTEN_FDS=1", "LISTEN_FDNAMES=rpc")
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Start()
}
