package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// want is the output of a run, with an X for each part that differs between runs.
const want = `machine ──► dials tcp://X, and offers function 80 there
public "hermit" is there, and stands open at http://X/hermit/
visitor ──► GET http://X/hermit/
visitor ◄── "Nobody can connect to me, and yet you are here. Welcome! hermit", after X
visitor ◄── brings 50 friends at once: the last one is in after X
visitor ◄── hears the clock: stroke 1
visitor ◄── hears the clock: stroke 2
visitor ◄── hears the clock: stroke 3
visitor ◄── hears the clock: stroke 4
visitor ◄── hears the clock: stroke 5
visitor ──► downloads 3 MiB, which the gateway gives priority -10, and clicks around meanwhile
visitor ◄── X clicks: half of them within X, 99 of 100 within X
visitor ◄── all of the 3 MiB, after X: X MB/s, and their SHA-256 is right
machine ──► leaves
public "hermit" is gone
visitor ◄── GET /: 502 Bad Gateway: the machine "hermit" is away
`

// One process shows all parties.
func TestOneProcess(t *testing.T) {
	var out transcript
	require.NoError(t, run(t.Context(), []string{"-size", "3"}, &out))
	require.True(t, strings.HasPrefix(out.String(), picture))
	require.Equal(t, want, out.told())
}

// A machine serves its files through another process.
func TestSeparate_Processes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "potion.txt"), []byte("mistletoe"), 0o600))
	public := start(t, "-public", "127.0.0.1:0")
	url := public.await(t, "accepts machines at ")
	front := public.await(t, "accepts visitors at ")
	for _, at := range []string{strings.TrimPrefix(url, "tcp://"), url} { // one after the other
		machine := start(t, "-behind", at, "-name", "druid", "-dir", dir)
		address := machine.await(t, "serves visitors at ")
		require.Equal(t, front+"druid/", address)
		require.Equal(t, "mistletoe", get(t, address+"potion.txt", http.StatusOK))
		get(t, address+"../../etc/passwd", http.StatusNotFound, http.StatusBadGateway)
		require.NoError(t, machine.stop())
		require.Contains(t, get(t, address+"potion.txt", http.StatusBadGateway), `the machine "druid" is away`)
	}
	require.NoError(t, public.stop())
	require.Equal(t, 2, strings.Count(public.out.told(), `"druid" is gone`))
}

// A refused machine returns the reason.
func TestMachine_Refused(t *testing.T) {
	public := start(t, "-public", "127.0.0.1:0")
	url := public.await(t, "accepts machines at ")
	first := start(t, "-behind", url)
	address := first.await(t, "serves visitors at ")
	for name, want := range map[string]string{
		"hermit": `there is another "hermit" already`, "": "is no name", "no/slash": "is no name", strings.Repeat("x", 21): "is no name",
	} {
		require.ErrorContains(t, run(t.Context(), []string{"-behind", url, "-name", name}, io.Discard), want)
	}
	get(t, address, http.StatusOK)
	require.NoError(t, public.stop())
	require.ErrorContains(t, first.end(), "the session has ended")
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":               {"-x"},
		`"hello" is not a flag`:         {"hello"},
		"-public and -behind are for":   {"-public", "a:1", "-behind", "a:1"},
		"0 MiB are outside 1..65536":    {"-size", "0"},
		"wire: dial tcp://127.0.0.1:0":  {"-behind", "127.0.0.1:0"},
		"wire: listen at tcp://no-port": {"-public", "no-port"},
		"listen tcp":                    {"-public", "127.0.0.1:0", "-visitors", "no-port"},
		"no-such-folder":                {"-behind", "127.0.0.1:0", "-dir", "no-such-folder"},
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
	for _, name := range []string{"-public ADDR", "-visitors HOST:PORT", "-behind ADDR", "-name NAME", "-dir DIR", "-size MIB", "unix:"} {
		require.Contains(t, out.String(), name)
	}
}

// A visitor checks all answers.
func TestVisitor_Checks(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"/", "500 Internal Server Error"}, {"/clock", "the clock struck 0 of 5 times"}, {"/library/2", "instead of"},
	} {
		good := pages("hermit")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != c.path:
				good.ServeHTTP(w, r)
			case c.path == "/":
				w.WriteHeader(http.StatusInternalServerError)
			default:
				io.WriteString(w, "something else")
			}
		}))
		v := newVisitor(server.URL+"/", &teller{begin: time.Now(), out: io.Discard})
		require.ErrorContains(t, v.visit(t.Context(), 2), c.want)
		require.Equal(t, c.path != "/", v.knockInVain(t.Context()) != nil, "a connection of a machine that has left is answered")
		server.Close()
	}
}

// get returns the content at an address, and requires one of the statuses.
func get(t *testing.T, address string, statuses ...int) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Contains(t, statuses, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// program is a run of the program.
type program struct {
	out       transcript
	interrupt context.CancelFunc
	ended     chan error
}

// start runs the program until it is stopped, or the test ends.
func start(t *testing.T, args ...string) *program {
	ctx, interrupt := context.WithCancel(t.Context())
	p := &program{interrupt: interrupt, ended: make(chan error, 1)}
	p.out.changed = make(chan struct{}, 1)
	go func() { p.ended <- run(ctx, args, &p.out) }()
	t.Cleanup(interrupt)
	return p
}

// stop interrupts the program, and returns its error.
func (p *program) stop() error {
	p.interrupt()
	return p.end()
}

// end waits for the end of the program, and returns its error.
func (p *program) end() error { return <-p.ended }

// await waits until the program prints a line with what, and returns the rest of the line.
func (p *program) await(t *testing.T, what string) string {
	t.Helper()
	for {
		if _, rest, ok := strings.Cut(p.out.String(), what); ok {
			line, _, whole := strings.Cut(rest, "\n")
			if whole {
				return line
			}
		}
		select {
		case <-p.out.changed:
		case err := <-p.ended:
			require.FailNow(t, "it has ended", "%v, before %q", err, what)
		}
	}
}

// transcript is the printed text.
type transcript struct {
	changed chan struct{} // gets a token with each change; may be nil

	mu  sync.Mutex
	all strings.Builder // guarded by mu
}

func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() {
		select {
		case o.changed <- struct{}{}:
		default:
		}
	}()
	return o.all.Write(p)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

var (
	line     = regexp.MustCompile(`(?m)^ *\d+\.\d\d ms  (.+)$`)
	variable = regexp.MustCompile(`127\.0\.0\.1:\d+|(after|within|◄──) [\d.]+(µs|ms|s)?|[\d.]+ MB/s`)
	number   = regexp.MustCompile(`[\d.:]+(µs|ms|s)?$`)
)

// told returns the printed messages, without times and addresses.
func (o *transcript) told() string {
	var b strings.Builder
	for _, m := range line.FindAllStringSubmatch(o.String(), -1) {
		what := strings.Join(strings.Fields(m[1]), " ")
		b.WriteString(variable.ReplaceAllStringFunc(what, func(s string) string {
			if s, ok := strings.CutSuffix(s, " MB/s"); ok {
				return number.ReplaceAllString(s, "X") + " MB/s"
			}
			return number.ReplaceAllString(s, "X")
		}) + "\n")
	}
	return b.String()
}
