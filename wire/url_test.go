package wire_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

func TestURL_Invalid(t *testing.T) {
	const both, dial, listen = "both", "dial", "listen"
	tests := []struct {
		op, url string
		want    []string // in the error
	}{
		{both, "", []string{"no scheme", "tcp://127.0.0.1:5330", "mem, tcp, tls, unix"}},
		{both, "127.0.0.1:5330", []string{"wire:", "tcp://127.0.0.1:5330"}},
		{both, "/run/app.sock", []string{"no scheme", "mem, tcp, tls, unix"}},
		{both, "carrier-pigeon://coop", []string{`"carrier-pigeon://coop"`, "mem, tcp, tls, unix", "Register"}},
		{both, "tcp:127.0.0.1:5330", []string{"slashes", "tcp://127.0.0.1:5330"}},
		{both, "tcp://127.0.0.1", []string{"port is missing", "tcp://127.0.0.1:5330"}},
		{both, "tcp://[::1]", []string{"port is missing"}},
		{both, "tcp://127.0.0.1:port", []string{"port"}},
		{both, "tcp://127.0.0.1:70000", []string{"no port 70000", "65535", "tcp://127.0.0.1:5330"}},
		{both, "tcp://127.0.0.1:1/path", []string{"path"}},
		{both, "tcp://127.0.0.1:1?a=b", []string{"query"}},
		{both, "tcp://127.0.0.1:1#a", []string{"fragment"}},
		{both, "tcp://me:secret@127.0.0.1:1", []string{"user"}},
		{both, "unix://", []string{"path", "missing", "unix:///run/app.sock"}},
		{both, "unix:///run/", []string{"path", "missing"}},
		{both, "unix://run/app.sock", []string{`"run"`, "unix:///run/app.sock"}},
		{both, "unix:%zz", []string{"unix"}},
		{both, "unix:///a?b", []string{"query"}},
		{both, "mem://", []string{"name is missing", "mem://name"}},
		{both, "mem:name", []string{"name is missing", "mem://name"}},
		{both, "mem://name?a", []string{"query"}},
		{dial, "tcp://:5330", []string{"host is missing", "tcp://127.0.0.1:5330"}},
		{dial, "tls://:5330", []string{"host is missing", "tls://127.0.0.1:5330"}},
		{dial, "mem://nobody", []string{"dial mem://nobody", "no listener of that name in this program"}},
		{dial, "unix:///nowhere/app.sock", []string{"dial unix:///nowhere/app.sock", "no such file"}},
		{listen, "tls://127.0.0.1:0", []string{"certificate", "Options.TLS"}},
		{listen, "tls://127.0.0.1", []string{"certificate"}},
	}
	for _, test := range tests {
		t.Run(test.op+" "+test.url, func(t *testing.T) {
			if test.op != listen {
				_, err := wire.Dial(t.Context(), test.url, wire.Options{})
				requireParts(t, err, test.want)
			}
			if test.op != dial {
				_, err := wire.Listen(t.Context(), test.url, wire.Options{})
				requireParts(t, err, test.want)
			}
		})
	}
}

// The error for a scheme that is not linked in names its import.
func TestScheme_NotImported(t *testing.T) {
	const root = `"github.com/asterisque-go/asterisque/wire/`
	for scheme, want := range map[string]string{
		"ws":       `import _ ` + root + `wswire"`,
		"wss":      `import _ ` + root + `wswire"`,
		"quic":     `import _ ` + root + `quicwire"`,
		"nats":     `import _ ` + root + `natswire"`,
		"nats+tls": `import _ ` + root + `natswire"`,
		"smux":     `import _ ` + root + `smuxwire"`,
		"smux+tls": `import _ ` + root + `smuxwire"`,
		"classic":  `import _ ` + root + `classicwire"`,
		"stdio":    `stdiowire.Register of ` + root + `stdiowire"`,
	} {
		t.Run(scheme, func(t *testing.T) {
			url := scheme + "://host:1/name"
			want := []string{`the scheme of "` + url + `" is unknown`, want + " adds " + scheme, "mem, tcp, tls, unix"}
			_, err := wire.Dial(t.Context(), url, wire.Options{})
			requireParts(t, err, want)
			require.ErrorIs(t, err, wire.ErrURL)
			_, err = wire.Listen(t.Context(), url, wire.Options{})
			requireParts(t, err, want)
			require.ErrorIs(t, wire.CheckURL(url), wire.ErrURL)
		})
	}
}

// CheckURL finds a URL that no transport accepts.
func TestCheckURL(t *testing.T) {
	for _, good := range []string{"tcp://127.0.0.1:5330", "tls://[::1]:5330", "unix:app.sock", "mem://nobody", "tcp://no.port"} {
		require.NoError(t, wire.CheckURL(good), good)
	}
	for bad, want := range map[string]string{
		"":                      "no scheme",
		"127.0.0.1:5330":        "no URL",
		"carrier-pigeon://coop": "known are mem, tcp, tls, unix",
		"tcp://me:pass word@h":  `"tcp://h" is no URL`,
	} {
		err := wire.CheckURL(bad)
		require.ErrorIs(t, err, wire.ErrURL, bad)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "pass")
	}
}

func requireParts(t *testing.T, err error, parts []string) {
	t.Helper()
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "wire: "), "%v", err)
	require.NotContains(t, err.Error(), "secret")
	for _, p := range parts {
		require.ErrorContains(t, err, p)
	}
}

// socket returns a path that is short enough for a socket on all systems.
func socket(t *testing.T) string {
	dir, err := os.MkdirTemp("", "wire")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "a socket")
}

// Listeners are reached at their URL.
func TestListener_URL(t *testing.T) {
	server, client := tlsOptions(t)
	path := socket(t)
	t.Chdir(filepath.Dir(path))
	for _, test := range []struct{ url, want string }{
		{"tcp://127.0.0.1:0", "tcp://127.0.0.1:"},
		{"tcp://localhost:0/", "tcp://"},
		{"tls://127.0.0.1:0", "tls://127.0.0.1:"},
		{"unix://" + strings.ReplaceAll(path, " ", "%20"), "unix://" + strings.ReplaceAll(path, " ", "%20")},
		{"unix:relative%20socket", "unix:relative%20socket"},
		{"mem://name", "mem://name"},
		{"mem://name/with/path", "mem://name/with/path"},
	} {
		t.Run(test.url, func(t *testing.T) {
			l := listen(t, test.url, server)
			require.True(t, strings.HasPrefix(l.URL(), test.want), l.URL())
			require.False(t, strings.HasSuffix(l.URL(), ":0"), "the real port")
			a, b := connect(t, l, client)
			require.NoError(t, a.WriteFrames([][]byte{[]byte("hello")}))
			frame, err := b.ReadFrame(5)
			require.NoError(t, err)
			require.Equal(t, "hello", string(frame))

			require.NoError(t, l.Close())
			require.NoError(t, l.Close(), "repeated")
			_, err = l.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorContains(t, err, "wire: ")
			require.NoError(t, b.WriteFrames([][]byte{[]byte("still there")}), "accepted wires continue")
			again := listen(t, test.url, server)
			require.NoError(t, again.Close())
		})
	}
}

// Close ends an Accept that waits.
func TestListener_CloseEndsAccept(t *testing.T) {
	for _, url := range []string{"tcp://127.0.0.1:0", "mem://name"} {
		l := listen(t, url, wire.Options{})
		accepted := make(chan error)
		go func() { // ends with Accept
			_, err := l.Accept()
			accepted <- err
		}()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
	}
}

func TestDial_Context(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections but does no handshake
	require.NoError(t, err)
	defer silent.Close()
	listen(t, "mem://ended", wire.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	tlsDone := make(chan error)
	go func() { // ends with ctx
		_, err := wire.Dial(ctx, "tls://"+silent.Addr().String(), wire.Options{})
		tlsDone <- err
	}()
	c, err := silent.Accept()
	require.NoError(t, err)
	defer c.Close()
	cancel()
	require.ErrorIs(t, <-tlsDone, context.Canceled)
	for _, url := range []string{"tcp://" + silent.Addr().String(), "mem://ended"} {
		_, err := wire.Dial(ctx, url, wire.Options{})
		require.ErrorIs(t, err, context.Canceled, url)
	}
}

// Close removes a socket file, and only a stale one is replaced.
func TestListen_SocketFile(t *testing.T) {
	path := socket(t)
	url := "unix://" + strings.ReplaceAll(path, " ", "%20")

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	_, err = wire.Listen(t.Context(), url, wire.Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE, "the address is in use")
	l.Close() // as if the process had died
	require.FileExists(t, path)

	require.NoError(t, listen(t, url, wire.Options{}).Close(), "the address is free")
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = wire.Listen(t.Context(), url, wire.Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE, "not a socket")
	require.FileExists(t, path)
}

// A dial without a mem listener is refused.
func TestMem_NoAccept(t *testing.T) {
	l := listen(t, "mem://once", wire.Options{})
	_, err := wire.Listen(t.Context(), "mem://once", wire.Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	var waiting []wire.Wire
	for range 128 {
		w, err := wire.Dial(t.Context(), "mem://once", wire.Options{})
		require.NoError(t, err, "Dial need not wait for Accept")
		waiting = append(waiting, w)
	}
	full := make(chan error)
	go func() { // ends when the listener is closed
		_, err := wire.Dial(context.Background(), "mem://once", wire.Options{})
		full <- err
	}()
	l.Close()
	if err := <-full; err != nil { // it may have found room that Close made
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	for _, w := range waiting {
		_, err := w.ReadFrame(100)
		require.Error(t, err, "no Accept will return it any more")
	}
	_, err = wire.Dial(t.Context(), "mem://once", wire.Options{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// loop is a Transport with one Wire.
type loop struct{ w wire.Wire }

var errNoListening = errors.New("no listening")

func (l loop) Dial(context.Context, *url.URL, wire.Options) (wire.Wire, error) { return l.w, nil }

func (l loop) Listen(context.Context, *url.URL, wire.Options) (wire.Listener, error) {
	return nil, errNoListening
}

// Register adds a scheme once.
func TestRegister_Once(t *testing.T) {
	a, _ := wire.Pipe()
	// The registry outlives the test, which may run again in the same process.
	scheme := "x-" + strings.ToLower(rand.Text())
	require.NoError(t, wire.Register(scheme, loop{a}))
	w, err := wire.Dial(t.Context(), scheme+"://anything", wire.Options{})
	require.NoError(t, err)
	require.Same(t, a, w)
	_, err = wire.Listen(t.Context(), scheme+"://me:secret@host", wire.Options{})
	require.ErrorIs(t, err, errNoListening)
	require.ErrorContains(t, err, "wire: listen at "+scheme+"://host:")
	_, err = wire.Dial(t.Context(), "y://anything", wire.Options{})
	require.ErrorContains(t, err, scheme, "known now")

	for _, scheme := range []string{scheme, "tcp", "", "UPPER", "with space", "1st", "a:b"} {
		require.ErrorContains(t, wire.Register(scheme, loop{a}), scheme, "%q", scheme)
	}
	require.Error(t, wire.Register("nothing", nil))
}
