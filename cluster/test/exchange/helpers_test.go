package exchange_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// enough is the time limit for an event that happens soon.
const enough = 2 * time.Minute

var (
	// whoami answers with the id of the node. back calls whoami on its caller and answers with
	// that.
	whoami = asterisque.Func[struct{}, string](1, "whoami")
	back   = asterisque.Func[struct{}, string](2, "back")

	// hold runs until its caller ends it, or is lost.
	hold = asterisque.Stream[struct{}, []byte, []byte, struct{}](3, "hold")

	everybody = []exchange.Rule{{From: exchange.Any, To: exchange.Any}}
	silent    = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// started returns an exchange that listens, and its URL, until the test ends.
func started(t testing.TB, cfg exchange.Config) (*exchange.Exchange, string) {
	t.Helper()
	return startedAt(t, cfg, "tcp://127.0.0.1:0", wire.Options{})
}

func startedAt(t testing.TB, cfg exchange.Config, url string, o wire.Options) (*exchange.Exchange, string) {
	t.Helper()
	cfg.Logger = silent
	x, err := exchange.New(cfg)
	require.NoError(t, err)
	ln, err := wire.Listen(t.Context(), url, o)
	require.NoError(t, err)
	over := make(chan error, 1)
	go func() { over <- x.Serve(context.Background(), ln) }() // ends with the exchange
	t.Cleanup(func() {
		x.Close()
		if err := <-over; err != nil {
			require.ErrorIs(t, err, asterisque.ErrUnavailable, "it was closed before it began")
		}
	})
	return x, ln.URL()
}

// service returns the functions for tests.
func service(id string, ended chan<- error) *asterisque.Service {
	svc := asterisque.NewService()
	whoami.Handle(svc, func(context.Context, struct{}) (string, error) { return id, nil })
	back.Handle(svc, func(ctx context.Context, _ struct{}) (string, error) {
		caller, err := whoami.Call(ctx, asterisque.SessionOf(ctx), struct{}{})
		return id + " called by " + caller, err
	})
	hold.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (none struct{}, err error) {
		if err = p.Send(ctx, nil); err == nil { // it runs
			<-ctx.Done()
			err = ctx.Err()
		}
		if ended != nil {
			ended <- err
		}
		return none, err
	})
	return svc
}

// joined joins a node, until the test ends.
func joined(t testing.TB, url, name, id string, opts ...asterisque.Option) *agent.Agent {
	t.Helper()
	return join(t, agent.Config{Exchange: []string{url}, Name: name, ID: id}, opts...)
}

func join(t testing.TB, cfg agent.Config, opts ...asterisque.Option) *agent.Agent {
	t.Helper()
	if cfg.Service == nil {
		cfg.Service = service(cfg.ID, nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	a, err := agent.Join(ctx, cfg, append(opts, asterisque.WithLogger(silent))...)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// callerOf returns a Pool over the nodes of a name, which ends with the test.
func callerOf(t testing.TB, a *agent.Agent, name string, opts ...agent.CallerOption) *pool.Pool {
	t.Helper()
	quick := pool.Config{Connection: asterisque.ReconnectConfig{First: 20 * time.Millisecond, Most: 100 * time.Millisecond}}
	p, err := a.Caller(t.Context(), name, append([]agent.CallerOption{agent.WithPool(quick)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// soon returns a context for an event that happens soon.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	t.Cleanup(cancel)
	return ctx
}

// ask calls whoami.
func ask(t testing.TB, on asterisque.Caller) string {
	t.Helper()
	id, err := whoami.Call(soon(t), on, struct{}{})
	require.NoError(t, err)
	return id
}

// dialled returns a session with a node that listens at a TCP port, until the test ends.
func dialled(t testing.TB, node *asterisque.Node) *asterisque.Session {
	t.Helper()
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	go node.Serve(context.Background(), ln) // ends with the node
	caller := asterisque.NewNode(asterisque.WithLogger(silent))
	t.Cleanup(func() { caller.Close() })
	s, err := caller.Dial(soon(t), ln.URL())
	require.NoError(t, err)
	return s
}

// aloneEnv is the environment variable that makes this program an exchange at the URL in it, in
// place of the tests.
const aloneEnv = "ASTERISQUE_EXCHANGE_ALONE"

// costs are the resources of an exchange in a process of its own.
type costs struct {
	Live       int64 // bytes: live objects and stacks
	RSS        int64 // as counted by the operating system; 0: unknown
	Goroutines int64
	Sessions   int64
	Held       int64 // bytes: Stats.Node.Held
}

// runAlone is the main function of an exchange in a process of its own. It prints its URL, and its
// costs for each line that it reads.
func runAlone(in io.Reader, out io.Writer) {
	x, err := exchange.New(exchange.Config{Policy: everybody, PerNode: 2500, Logger: silent})
	check(err)
	ln, err := wire.Listen(context.Background(), os.Getenv(aloneEnv), wire.Options{})
	check(err)
	go x.Serve(context.Background(), ln) // ends with the process
	fmt.Fprintln(out, ln.URL())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if file := lines.Text(); file != "" {
			profileHeap(file)
		}
		check(json.NewEncoder(out).Encode(costsOf(x)))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func profileHeap(file string) {
	runtime.GC()
	f, err := os.Create(file)
	check(err)
	check(pprof.WriteHeapProfile(f))
	check(f.Close())
}

func costsOf(x *exchange.Exchange) costs {
	runtime.GC() // the second collection frees objects that pools keep over the first
	debug.FreeOSMemory()
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(read)
	s := x.Stats()
	return costs{
		Live: int64(read[0].Value.Uint64() + read[1].Value.Uint64()), RSS: resident(),
		Goroutines: int64(runtime.NumGoroutine()), Sessions: int64(s.Sessions), Held: int64(s.Node.Held),
	}
}

// resident returns the memory of this process as counted by the operating system, or 0.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var all, here int64
	if _, err := fmt.Sscan(string(text), &all, &here); err != nil {
		return 0
	}
	return here * int64(os.Getpagesize())
}

// alone is an exchange in a process of its own.
type alone struct {
	url   string
	cmd   *exec.Cmd
	ask   io.WriteCloser
	lines *bufio.Reader
}

// startAlone starts an exchange in a process of its own, at a URL, until the test ends.
func startAlone(t testing.TB, url string) *alone {
	t.Helper()
	x := &alone{cmd: exec.Command(os.Args[0])}
	x.cmd.Env = append(os.Environ(), aloneEnv+"="+url)
	x.cmd.Stderr = os.Stderr
	var err error
	x.ask, err = x.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := x.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, x.cmd.Start())
	t.Cleanup(func() { x.kill() })
	x.lines = bufio.NewReader(out)
	line, err := x.lines.ReadString('\n')
	require.NoError(t, err)
	x.url = strings.TrimSpace(line)
	return x
}

// kill ends the exchange at once, without a shutdown.
func (x *alone) kill() {
	x.cmd.Process.Kill()
	x.cmd.Wait()
}

// costs returns the present costs of the exchange. If file is not empty, it writes a heap profile
// there.
func (x *alone) costs(t testing.TB, file string) (c costs) {
	t.Helper()
	_, err := fmt.Fprintln(x.ask, file)
	require.NoError(t, err)
	line, err := x.lines.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &c))
	return c
}

// through returns the URL of a forwarder to another URL. For each connection it sends a function to
// cut that cuts the connection.
func through(t testing.TB, url string, cut chan<- func()) string {
	t.Helper()
	return "tcp://" + forwarded(t, func(near net.Conn) (net.Conn, error) {
		far, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
		if err == nil {
			cut <- func() { near.Close(); far.Close() }
		}
		return far, err
	})
}

// forwarded returns an address that forwards connections to those made by dial.
func forwarded(t testing.TB, dial func(near net.Conn) (far net.Conn, err error)) (at string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with the listener
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := dial(near)
			if err != nil {
				near.Close()
				continue
			}
			go carry(near, far) // ends with either
			go carry(far, near) // the same
		}
	}()
	return ln.Addr().String()
}

func carry(from, to net.Conn) {
	io.Copy(to, from)
	from.Close()
	to.Close()
}
