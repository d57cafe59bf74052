package wswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// DialOption changes a [Dial].
type DialOption func(*dialConfig)

type dialConfig struct {
	tls    *tls.Config
	header http.Header
}

// WithTLS sets the TLS configuration for "wss". It is copied before use. The default verifies by
// the roots of the system.
// Not in WebAssembly, where the host does TLS.
func WithTLS(c *tls.Config) DialOption {
	return func(d *dialConfig) { d.tls = c }
}

// WithHeader adds headers to the request, such as Authorization, Cookie or Origin. It is copied by
// Dial.
// Not in WebAssembly, where the host makes the request.
func WithHeader(h http.Header) DialOption {
	return func(d *dialConfig) { d.header = h }
}

// Dial connects to "ws://host:port/path" or "wss://host:port/path"; the port may be left out, and
// there may be a query. It goes through the proxy that the environment names in HTTPS_PROXY, or
// HTTP_PROXY for "ws"; see [http.ProxyFromEnvironment]. Redirects are not followed. start bounds
// Dial, and has no effect on the Wire that is returned.
//
// Give the Wire to a node with Attach. An error that wraps [wire.ErrURL] says that the URL can
// never be used. If the server answers with an HTTP error, its status and first lines are in the
// error of Dial. An error shows none of the secrets of the URL, as [transport.HideURL] says. The
// answer of the server may still contain those of a header, if it repeats the request.
func Dial(start context.Context, rawURL string, opts ...DialOption) (wire.Wire, error) {
	u, err := transport.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("wire: %w; a URL is, for example, wss://example.org/rpc", err)
	}
	var cfg dialConfig
	for _, o := range opts {
		o(&cfg)
	}
	w, err := dial(start, u, cfg)
	if err != nil {
		return nil, fmt.Errorf("wire: dial %s: %w", transport.ShowURL(rawURL), transport.HideURL(err, rawURL))
	}
	return w, nil
}

// check returns an error if u is no URL for Dial.
func check(u *url.URL) error {
	example := fmt.Sprintf("for example %s://127.0.0.1:8080/rpc", u.Scheme)
	switch {
	case u.Scheme != "ws" && u.Scheme != "wss":
		return fmt.Errorf("the scheme is %q; use ws or wss, for example wss://example.org/rpc", u.Scheme)
	case u.Opaque != "":
		return fmt.Errorf("two slashes are missing behind the scheme; %s", example)
	case u.Hostname() == "":
		return fmt.Errorf("the host is missing; %s", example)
	case u.Fragment != "":
		return errors.New("a fragment has no meaning here")
	case u.Port() != "":
		_, err := transport.HostPort(&url.URL{Scheme: u.Scheme, Host: u.Host}, true)
		return err
	}
	return nil
}
