package exchange_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/wire"
)

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
