package wire

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// ErrURL is what errors of [Dial] and [Listen] wrap if the URL can never be used: it is no URL, its
// scheme is unknown, or it lacks what its scheme needs.
var ErrURL = transport.ErrURL

// schemes is the registry of transports.
var schemes = struct {
	mu sync.RWMutex
	of map[string]Transport // guarded by mu; by scheme
}{of: map[string]Transport{
	"mem":  &memTransport{listening: map[string]*memListener{}},
	"tcp":  tcpTransport{},
	"tls":  tlsTransport{},
	"unix": unixTransport{},
}}

// Register makes [Dial] and [Listen] use t for URLs that start with scheme and "://". A program
// does so when it starts, for the schemes "tcp", "tls", "unix" and "mem" are there already. A
// scheme has lower-case letters, digits, '+', '-' and '.', and can be registered once.
func Register(scheme string, t Transport) error {
	if u, err := url.Parse(scheme + "://host"); err != nil || u.Scheme != scheme || scheme == "" {
		return fmt.Errorf("wire: register %q: not a scheme: it needs lower-case letters, digits, '+', '-' or '.', a letter first", scheme)
	}
	if t == nil {
		return fmt.Errorf("wire: register %q: the transport is nil", scheme)
	}
	schemes.mu.Lock()
	defer schemes.mu.Unlock()
	if _, ok := schemes.of[scheme]; ok {
		return fmt.Errorf("wire: register %q: the scheme is registered already", scheme)
	}
	schemes.of[scheme] = t
	return nil
}

// Dial connects to a URL:
//
//   - "tcp://host:port"; the zone of an IPv6 address is escaped: "tcp://[fe80::1%25eth0]:5330"
//   - "tls://host:port", with [Options].TLS
//   - "unix:///path/of.sock", or "unix:relative.sock"; "unix:@name" is in the abstract name space
//     of Linux
//   - "mem://name", within this program
//   - what has been added with [Register]
//
// It waits until the connection is made, TLS handshake included; start ends the wait, and has no
// effect on the Wire that is returned. The error shows the URL as [transport.ShowURL] does, and
// what the transport says without its secrets, as [transport.HideURL].
func Dial(start context.Context, rawURL string, o Options) (Wire, error) {
	u, t, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	w, err := t.Dial(start, u, o)
	if err != nil {
		return nil, fmt.Errorf("wire: dial %s: %w", transport.ShowURL(rawURL), transport.HideURL(err, rawURL))
	}
	return w, nil
}

// Listen listens at a URL as for [Dial]. Port 0 lets the system choose one, which [Listener].URL
// tells; without a host, as in "tcp://:5330", it listens at all addresses. start governs only the
// beginning; the Listener has to be closed. Errors are as those of Dial.
//
// Close removes the file of a Unix socket, unless the socket was handed over ([ListenerFile]), or
// another file has its path now. On Unix systems a socket file that a dead process has left is
// replaced; of several programs that find the same one, one does that, and the others fail with
// EADDRINUSE, as where somebody listens. While a socket file is made, a file beside it, whose name
// has ".asterisque-lock" behind that of the socket, keeps other programs from it; Listen waits 10
// seconds for it at most. So the folder has to be writable, and should be so for those only who may
// take the place of this program. The path has at most 107 bytes on Linux and Windows, 103 on macOS
// and the BSDs.
//
// Connections that nobody has accepted yet wait in the queue of the system, as many as it allows
// (sysctl net.core.somaxconn on Linux).
func Listen(start context.Context, rawURL string, o Options) (Listener, error) {
	u, t, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	l, err := t.Listen(start, u, o)
	if err != nil {
		return nil, fmt.Errorf("wire: listen at %s: %w", transport.ShowURL(rawURL), transport.HideURL(err, rawURL))
	}
	return l, nil
}

// CheckURL returns the error that [Dial] and [Listen] have for a URL that cannot be parsed, or
// whose scheme is unknown, without trying to reach anybody. It wraps [ErrURL]. What the transport
// demands of the URL, such as a port, is not checked: Dial says that.
func CheckURL(rawURL string) error {
	_, _, err := parse(rawURL)
	return err
}

// parse returns the parts of a URL and the transport for it.
func parse(rawURL string) (*url.URL, Transport, error) {
	u, err := transport.ParseURL(rawURL)
	if err != nil {
		return nil, nil, fmt.Errorf("wire: %w; a URL is, for example, %s", err, exampleTCP)
	}
	schemes.mu.RLock()
	defer schemes.mu.RUnlock()
	if t, ok := schemes.of[u.Scheme]; ok {
		return u, t, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(schemes.of)), ", ")
	if u.Scheme == "" {
		return nil, nil, transport.BadURL(fmt.Errorf("wire: %q has no scheme; a URL is, for example, %s; known schemes are %s", transport.ShowURL(rawURL), exampleTCP, known))
	}
	return nil, nil, transport.BadURL(fmt.Errorf("wire: the scheme of %q is unknown; known are %s; %s", transport.ShowURL(rawURL), known, adding(u.Scheme)))
}

// adding returns how a program makes a scheme known.
func adding(scheme string) string {
	const root = "github.com/asterisque-go/asterisque/wire/"
	switch scheme {
	case "ws", "wss":
		return fmt.Sprintf("import _ %q adds %s", root+"wswire", scheme)
	case "quic":
		return fmt.Sprintf("import _ %q adds %s", root+"quicwire", scheme)
	case "nats", "nats+tls":
		return fmt.Sprintf("import _ %q adds %s", root+"natswire", scheme)
	case "smux", "smux+tls":
		return fmt.Sprintf("import _ %q adds %s", root+"smuxwire", scheme)
	case "classic":
		return fmt.Sprintf("import _ %q adds %s", root+"classicwire", scheme)
	case "stdio":
		return fmt.Sprintf("stdiowire.Register of %q adds %s", root+"stdiowire", scheme)
	}
	return "Register adds others"
}

const exampleTCP = "tcp://127.0.0.1:5330"
