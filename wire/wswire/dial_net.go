//go:build !js

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

func dial(ctx context.Context, u *url.URL, cfg dialConfig) (wire.Wire, error) {
	if err := check(u); err != nil {
		return nil, transport.BadURL(err)
	}
	var d dialler
	t := d.transport(cfg.tls)
	defer t.CloseIdleConnections() // of a server with another answer
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
	// until the writer of the request has released it, which may be after the answer: Close would
	// take it for one that is stuck
	d.conn.hold()
	d.conn.letGo()
	state := resp.TLS
	if state == nil && d.tls != nil {
		s := d.tls.ConnectionState()
		state = &s
	}
	return newSocket(ws, d.conn, true, state, nil), nil
}

// dialler records the connection that the HTTP client has made.
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

// dialError returns the error for a failed dial.
func dialError(resp *http.Response, err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // the URL is in the error already
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
