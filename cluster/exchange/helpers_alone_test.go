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

// aloneEnv says that this program is to be an exchange, at the URL that it has, and no test.
const aloneEnv = "ASTERISQUE_EXCHANGE_ALONE"

// costs are what an exchange takes that has a process of its own.
type costs struct {
	Live       int64 // bytes: live objects and stacks
	RSS        int64 // bytes: what the operating system counts; 0: it does not say
	Goroutines int64
	Sessions   int64
	Held       int64 // bytes: Stats.Node.Held
}

// runAlone is the whole program of an exchange that has a process of its own. It says where it
// listens, and what it costs for each line that is read.
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
	runtime.GC() // the second one frees what pools have kept over the first
	debug.FreeOSMemory()
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(read)
	s := x.Stats()
	return costs{
		Live: int64(read[0].Value.Uint64() + read[1].Value.Uint64()), RSS: resident(),
		Goroutines: int64(runtime.NumGoroutine()), Sessions: int64(s.Sessions), Held: int64(s.Node.Held),
	}
}

// resident returns what the operating system counts as the memory of this process, or 0.
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

// alone is an exchange that has a process of its own.
type alone struct {
	url   string
	cmd   *exec.Cmd
	ask   io.WriteCloser
	lines *bufio.Reader
}

// startAlone starts an exchange that has a process of its own, at a URL, until the test ends.
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

// kill ends it at once, without a word to anybody.
func (x *alone) kill() {
	x.cmd.Process.Kill()
	x.cmd.Wait()
}

// costs returns what the exchange costs now. A file that is named gets a profile of its heap.
func (x *alone) costs(t testing.TB, file string) (c costs) {
	t.Helper()
	_, err := fmt.Fprintln(x.ask, file)
	require.NoError(t, err)
	line, err := x.lines.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &c))
	return c
}
