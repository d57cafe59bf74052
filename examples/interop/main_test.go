package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/wire"
)

// waits is the number of parallel tests that run at once. Only tests that mostly wait are parallel.
const waits = 4

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(waits))
	}
	leak.Main(m)
}

// soak makes some tests run for the full time of their figures.
var soak = flag.Bool("soak", false, "run the long versions of the tests that have one")

// hangs is the time after which a test fails that waits for an event. It is longer than any slow
// machine needs.
const hangs = 2 * time.Minute

// few returns the number of calls that the case of many calls makes on this machine.
func few() int {
	if *soak {
		return 2000
	}
	return 300
}

// sampled reports whether row n of a table is to be run, if all rows have the same goroutines: each
// third one with the race detector, which makes them ten times as long.
func sampled(n int) bool { return !race.Enabled || *soak || n%3 == 0 }

// The matrix passes over every scheme.
func TestMatrix_Schemes(t *testing.T) {
	for _, c := range columnsOf(schemes, "") {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			requirePasses(t, c.scheme, c.codec, isClassic(c.scheme+":"))
		})
	}
}

// The matrix passes with every value codec.
func TestMatrix_Codecs(t *testing.T) {
	for n, name := range []string{"cbor", "json", "raw", "msgpack"} {
		if !sampled(n) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requirePasses(t, "mem", name, name == "raw")
		})
	}
}

// requirePasses requires that every case passes, or is skipped with a reason where mayskip permits
// that.
func requirePasses(t *testing.T, scheme, codecName string, mayskip bool) {
	t.Helper()
	var results []result
	failed, err := runBoth(t.Context(), scheme, flags{codec: codecName, calls: few()}, func(r result) { results = append(results, r) })
	require.NoError(t, err)
	require.Len(t, results, len(cases(few())))
	ok := 0
	for _, r := range results {
		if r.outcome() == "ok" {
			ok++
			continue
		}
		require.True(t, mayskip && r.outcome() == "skipped", "%s: %v", r.name, r.err)
		require.NotEmpty(t, r.err.Error())
	}
	require.Zero(t, failed)
	require.GreaterOrEqual(t, ok, 10, "something is left to be checked")
}

// Two programs meet.
func TestTwoProcesses(t *testing.T) {
	for n, scheme := range schemes {
		if !sampled(n) || scheme == "mem" || scheme == "unix" && runtime.GOOS == "windows" {
			continue
		}
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cert := filepath.Join(dir, "cert.pem")
			at, end, err := localURL(scheme, dir)
			require.NoError(t, err)
			defer end()
			url, wait := start(t, t.Context(), "-listen", at, "-once", "-cert", cert)
			var out bytes.Buffer
			require.NoError(t, run(t.Context(), []string{"-dial", url, "-calls", "100", "-cert", cert}, &out))
			require.Contains(t, out.String(), "ok      100 calls ")
			require.True(t, strings.HasSuffix(out.String(), "all ok\n"), out.String())
			served := wait()
			require.Contains(t, served, "ended: ")
			require.Contains(t, served, "served echo ")
		})
	}
}

// The listener serves until an interrupt.
func TestListener_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	url, wait := start(t, ctx, "-listen", "tcp://127.0.0.1:0", "-codec", "json")
	for _, codecName := range []string{"json", "json"} {
		require.NoError(t, run(t.Context(), []string{"-dial", url, "-calls", "10", "-codec", codecName}, io.Discard))
	}
	require.ErrorIs(t, run(t.Context(), []string{"-dial", url, "-codec", "raw"}, io.Discard), asterisque.ErrHandshake)
	interrupt()
	require.Contains(t, wait(), "served echo ")
}

// Without arguments, a table has the results of all schemes.
func TestTable_AllSchemes(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runAll(t.Context(), flags{calls: 10}, []string{"mem", "classic"}, &out))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, []string{"ms", "mem", "classic-messagepack", "classic-simple"}, strings.Fields(lines[0]))
	require.Regexp(t, `^unary +\d+\.\d +\d+\.\d +\d+\.\d$`, lines[1])
	require.Regexp(t, `^deadline +\d+\.\d +– +–$`, lines[13])
	require.Contains(t, out.String(), "–       deadline: classic has no TTL\n")
	require.True(t, strings.HasSuffix(out.String(), "\nall ok\n"), out.String())
}

// A scheme that cannot carry a codec is left out.
func TestTable_CodecOfScheme(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runAll(t.Context(), flags{calls: 10, codec: "json"}, []string{"mem", "classic"}, &out))
	require.Equal(t, []string{"ms", "mem"}, strings.Fields(strings.SplitN(out.String(), "\n", 2)[0]))
}

// A failed case is reported.
func TestMatrix_Failure(t *testing.T) {
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{})
	require.NoError(t, err)
	svc := asterisque.NewService() // that has nothing but echo, and that wrong
	echo.Handle(svc, func(_ context.Context, text string) (string, error) { return text + "!", nil })
	node := asterisque.NewNode(asterisque.WithService(svc))
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- node.Serve(ctx, ln) }() // until stop
	defer func() {
		stop()
		require.NoError(t, <-served)
		require.NoError(t, node.Close())
	}()
	var out bytes.Buffer
	require.EqualError(t, run(t.Context(), []string{"-dial", ln.URL(), "-calls", "10"}, &out), "25 FAILED")
	require.Contains(t, out.String(), "the result: asterisque ∗ 🌟!, and not asterisque ∗ 🌟")
	require.Regexp(t, `FAILED +cancel .* no such function`, out.String())
	require.Regexp(t, `ok +error: no such function `, out.String())
	require.NotContains(t, out.String(), "all ok")

	out.Reset()
	printTable(&out, []column{{title: "tcp", results: []result{{name: "unary", err: io.ErrUnexpectedEOF}}}})
	require.Contains(t, out.String(), "FAILED  tcp, unary: unexpected EOF\n")
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":                    {"-x"},
		`"hello" is not a flag`:              {"hello"},
		"-listen and -dial are for one":      {"-listen", "a", "-dial", "a"},
		"-patient goes with -fixture":        {"-patient", "-listen", "a"},
		"-once goes with -listen":            {"-once"},
		`-codec: "xml" is none of cbor, cla`: {"-codec", "xml"},
		"classic-simple go with classic":     {"-codec", "classic-simple", "-dial", "tcp://127.0.0.1:1"},
		"and no others do":                   {"-codec", "cbor", "-dial", "classic://127.0.0.1:1"},
		"-cert goes with":                    {"-cert", "x"},
		"-calls: 0 is not positive":          {"-calls", "0"},
	} {
		err := run(t.Context(), args, io.Discard)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(usageError))
	}
	for want, args := range map[string][]string{
		"wire: dial tcp://127.0.0.1:0":        {"-dial", "tcp://127.0.0.1:0"},
		"wire: listen at tcp://no-port":       {"-listen", "tcp://no-port"},
		"no-such-file":                        {"-dial", "tls://127.0.0.1:1", "-cert", "no-such-file"},
		"main.go: there is no certificate in": {"-dial", "tls://127.0.0.1:1", "-cert", "main.go"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard), want)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(interrupted, nil, io.Discard))
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out))
	for _, name := range []string{"-listen URL", "-dial URL", "-once", "-patient", "-codec NAME", "-calls int", "-cert FILE"} {
		require.Contains(t, out.String(), name)
	}
}

// start runs a listening interop and returns its URL and a function that waits for its end and
// returns the output since the start.
func start(t *testing.T, ctx context.Context, args ...string) (url string, wait func() string) {
	t.Helper()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, args, w)
		w.Close()
	}()
	return listening(t, r, func() error { return <-ended })
}

// listening reads the URL at which a program listens, and reads its output until its end.
func listening(t *testing.T, r io.Reader, end func() error) (url string, wait func() string) {
	t.Helper()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	require.NoError(t, err, line)
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listens at ")
	require.True(t, ok, line)
	printed := make(chan string, 1)
	go func() { // ends with the program
		b, _ := io.ReadAll(out)
		printed <- string(b)
	}()
	return url, func() string {
		all := <-printed
		require.NoError(t, end(), all)
		return all
	}
}
