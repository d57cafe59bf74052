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

// ErrURL is wrapped by the errors of [Dial] and [Listen] if the URL can never be used: it is not a
// URL, its scheme is unknown, or a part that its scheme needs is missing.
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

// Register makes [Dial] and [Listen] use t for URLs that start with scheme and "://". Programs call
// it at start. The schemes "tcp", "tls", "unix" and "mem" are always registered. A scheme has
// lower-case letters, digits, '+', '-' and '.', and can be registered once.
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
//   - a scheme that was added with [Register]
//
// It waits until the connection is made, TLS handshake included; start ends the wait, and has no
// effect on the Wire that is returned. The error shows the URL as [transport.ShowURL] does, and the
// transport's error without secrets of the URL, as [transport.HideURL].
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

// Listen listens at a URL as for [Dial]. With port 0 the system chooses a port; [Listener].URL
// returns it. Without a host, as in "tcp://:5330", it listens at all addresses. start governs only
// the beginning; the Listener has to be closed. Errors are as those of Dial.
//
// Close removes the file of a Unix socket, unless the socket was handed over ([ListenerFile]), or
// another file has replaced it. On Unix systems a socket file that a dead process has left is
// replaced. If several programs find the same one, one of them replaces it, and the rest fail with
// EADDRINUSE, as they do if another program listens there. While a socket file is created, a lock
// file beside it, with the suffix ".asterisque-lock", excludes other programs; Listen waits for it
// for at most 10 seconds. So the folder has to be writable, but only for users with permission to
// replace this program. The path has at most 107 bytes on Linux and Windows, 103 on macOS and the
// BSDs.
//
// Connections that are not accepted yet wait in the queue of the system, as many as it allows
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

// CheckURL returns the error of [Dial] and [Listen] for a URL that cannot be parsed, or has an
// unknown scheme, without any connection. It wraps [ErrURL]. It does not check the requirements of
// the transport, such as a port: Dial does.
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

// adding returns the text on how a program adds a scheme. A new package below wire needs a case.
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
