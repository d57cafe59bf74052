package wswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"

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
func WithTLS(c *tls.Config) DialOption {
	return func(d *dialConfig) { d.tls = c }
}

// WithHeader adds headers to the request, such as Authorization, Cookie or Origin. It is copied by
// Dial.
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
// error of Dial. An error shows none of the secrets of the URL, as [transport.HideURL] says. What
// the server answers may still have those of a header, if it says what it was sent.
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

func dial(ctx context.Context, u *url.URL, cfg dialConfig) (wire.Wire, error) {
	if err := check(u); err != nil {
		return nil, transport.BadURL(err)
	}
	var d dialler
	t := d.transport(cfg.tls)
	defer t.CloseIdleConnections() // of a server that answered something else
	ws, resp, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		HTTPHeader:   cfg.header,
		Subprotocols: []string{Subprotocol},
	})
	if err != nil {
		return nil, dialError(resp, err)
	}
	if got := ws.Subprotocol(); got != Subprotocol {
		ws.CloseNow()
		return nil, fmt.Errorf("the server has a WebSocket there, but did not agree to the subprotocol %s; it chose %q", Subprotocol, got)
	}
	// until the writer of the request has let go, which may be after the answer: Close would take
	// it for one that is stuck
	d.conn.hold()
	d.conn.letGo()
	state := resp.TLS
	if state == nil && d.tls != nil {
		s := d.tls.ConnectionState()
		state = &s
	}
	return newSocket(ws, d.conn, true, state, nil), nil
}

// check returns why u is no URL for Dial.
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
	}
	return nil
}

// dialler remembers the connection that the HTTP client has made.
type dialler struct {
	conn *conn
	tls  *tls.Conn // nil without TLS, or behind a proxy
}

// wsTransport returns an HTTP transport for one connection.
func (d *dialler) transport(cfg *tls.Config) *http.Transport {
	cfg = transport.TLSConfig(cfg, "http/1.1") // as which WebSocket begins
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: cfg, // for TLS through a proxy
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			return d.made(c, err)
		},
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, network, address)
			d.tls, _ = c.(*tls.Conn)
			return d.made(c, err)
		},
	}
}

func (d *dialler) made(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	transport.BoundUnsent(c)
	d.conn = &conn{Conn: c}
	return d.conn, nil
}

// dialError returns why there is no WebSocket.
func dialError(resp *http.Response, err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // the URL is said already
	}
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return err
	}
	text := "no explanation"
	if resp.Body != nil {
		if b, _ := io.ReadAll(resp.Body); len(b) > 0 {
			text = strings.TrimSpace(string(b))
		}
	}
	if to := resp.Header.Get("Location"); to != "" {
		text = "go to " + transport.ShowURL(to)
	}
	return fmt.Errorf("the server did not open a WebSocket and answered %q: %s", resp.Status, text)
}
