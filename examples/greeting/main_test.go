package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The output of a run, with an X for everything that differs between runs, such as which side first
// notices the deadline.
const (
	wantServer = `server | listens at tcp://127.0.0.1:X
server ← client | "client" connects
server → client | surround("asterisk")
server ← client | "*asterisk*"
server | session X has ended: asterisque: session closed: closed by the application (said by the peer)
server | stops
`
	wantClient = `client → server | session X with "server" begins
client → server | greet("asterisk")
client ← server | "hello, *asterisk*", after X
client → server | square(0) … square(999), all at once
client ← server | 0 … 998001, after X
client → server | sum: sends 3 1 4 1 5 9
client ← server | sum: gets 3 4 8 9 14 23, and the result: 6 numbers
client → server | sing("la la la")
client ← server | asterisque: no such function: function 99 (said by the peer); it did not run: safe to repeat
client → server | ponder("why?"), within 50ms
client ← server | asterisque: expiredX
client → server | shuts down
`
)

// One process shows both sides.
func TestOneProcess(t *testing.T) {
	var out transcript
	require.NoError(t, run(t.Context(), nil, &out))
	require.Equal(t, wantServer, out.of("server"))
	require.Equal(t, wantClient, out.of("client"))
}

// Two processes meet over TCP.
func TestTwoProcesses(t *testing.T) {
	url, server := listen(t, t.Context(), "-listen", "127.0.0.1:0", "-once")
	var client transcript
	require.NoError(t, run(t.Context(), []string{"-dial", strings.TrimPrefix(url, "tcp://")}, &client))
	out, err := server()
	require.NoError(t, err)
	require.Equal(t, wantServer, out.of("server"))
	require.Equal(t, wantClient, client.of("client"))
}

// The listener serves until an interrupt.
func TestListener_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	url, server := listen(t, ctx, "-listen", "tcp://127.0.0.1:0")
	for range 2 {
		var client transcript
		require.NoError(t, run(t.Context(), []string{"-dial", url}, &client))
		require.Equal(t, wantClient, client.of("client"))
	}
	interrupt()
	out, err := server()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(out.of("server"), `"client" connects`))
	require.True(t, strings.HasSuffix(out.of("server"), "server | stops\n"), "it says that it stops")
}

// An interrupt ends a listener without visitors.
func TestListener_Unvisited(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	_, server := listen(t, ctx, "-listen", "127.0.0.1:0", "-once")
	interrupt()
	_, err := server()
	require.NoError(t, err)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":                    {"-x"},
		`"hello" is not a flag`:              {"hello"},
		"-listen and -dial are for one":      {"-listen", "a:1", "-dial", "a:1"},
		"-once goes with -listen":            {"-once"},
		"wire: dial tcp://127.0.0.1:0":       {"-dial", "127.0.0.1:0"},
		"wire: listen at tcp://no-port":      {"-listen", "no-port"},
		`"carrier-pigeon://loft" is unknown`: {"-dial", "carrier-pigeon://loft"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard), want)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(interrupted, nil, io.Discard), "the client's failure ends the server too")
}

func TestHelp_EveryFlag(t *testing.T) {
	var out transcript
	require.NoError(t, run(t.Context(), []string{"-h"}, &out))
	for _, name := range []string{"-listen ADDR", "-dial ADDR", "-once", "unix:"} {
		require.Contains(t, out.String(), name)
	}
}

// listen runs a listening greeting and returns its URL and a function that waits for its end.
func listen(t *testing.T, ctx context.Context, args ...string) (url string, wait func() (*transcript, error)) {
	r, w := io.Pipe()
	var out transcript
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, args, io.MultiWriter(&out, w))
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listens at ")
	require.True(t, ok, line)
	r.Close() // only out gets further output: MultiWriter writes to it first
	return url, func() (*transcript, error) { return &out, <-ended }
}

// transcript is the printed text.
type transcript struct {
	mu  sync.Mutex
	all strings.Builder // guarded by mu
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

var (
	line     = regexp.MustCompile(`(?m)^ *\d+\.\d\d ms  (\S+(?: . \S+)?) {2,}(.+)$`)
	variable = regexp.MustCompile(`(127\.0\.0\.1:|after |session )([0-9a-f]{8}\b|[\d.]+(µs|ms|s)?)|(expired).*`)
)

// of returns the lines of a side. It leaves out the server's line about pondering: on a very busy
// machine the deadline may expire before the call arrives.
func (o *transcript) of(side string) string {
	var b strings.Builder
	for _, m := range line.FindAllStringSubmatch(o.String(), -1) {
		who, what := m[1], strings.Join(strings.Fields(m[2]), " ")
		if strings.HasPrefix(who, side) && !strings.Contains(what, "left to ponder") {
			b.WriteString(who + " | " + variable.ReplaceAllString(what, "${1}${4}X") + "\n")
		}
	}
	return b.String()
}
