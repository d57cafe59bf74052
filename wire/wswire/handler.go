//go:build !js

package wswire

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/asterisque-go/asterisque/internal/boundlog"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Acceptor makes something, such as a session, of a Wire that the other side has connected. A
// *asterisque.Node is one.
type Acceptor[S any] interface {
	// Accept takes over w, and closes it if it returns an error. ctx bounds Accept itself, and not
	// its result.
	Accept(ctx context.Context, w wire.Wire) (S, error)
}

// Option changes a [Handler].
type Option func(*config)

type config struct {
	origins []string
	log     *slog.Logger
}

// WithOrigins also allows pages from these hosts to connect, such as "example.org" or
// "*.example.org:8080", or, with a scheme, "https://example.org". The asterisk stands for any
// characters but a slash; case does not matter. The server's own host, as the request names it, is
// always allowed.
func WithOrigins(patterns ...string) Option {
	return func(c *config) { c.origins = append(c.origins, patterns...) }
}

// WithLogger sets the logger for connections that could not be accepted, because of an invalid
// request or an error of Accept. The level is Warn. The default is the logger of the Acceptor, if
// it has a method Logger() *slog.Logger, else slog.Default(), when Handler is called.
//
// Unauthenticated peers can cause such log lines. So at most 10 of one kind are logged in a second,
// and then their number, with up to 256 bytes of each text in them.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) { c.log = l }
}

// Handler serves a route of an HTTP/1.1 server: it makes a Wire of each request and gives it to a,
// which usually is a node:
//
//	mux.Handle("/rpc", wswire.Handler(node))
//
// A request that is not a WebSocket, comes from another origin, or does not offer [Subprotocol] is
// answered with an HTTP error that gives the reason.
//
// Each Accept runs on the goroutine of its request, with the context of the request, including the
// values that middleware has added. The Wire outlives both: the time limits of the server end with
// the request, and neither Shutdown nor Close of an http.Server affects the Wire. So close the node
// as well.
//
// If a is a [transport.Door], as a node is, each request needs a place there before it becomes a
// WebSocket. Without a place it is answered with 503 and Retry-After. The cost of a client before
// its request is complete depends on the http.Server, which has no time limits by default: set
// ReadHeaderTimeout and WriteTimeout to some seconds, IdleTimeout to a minute or so, and
// MaxHeaderBytes to 16 KiB. The place is assigned to http.Request.RemoteAddr: behind a proxy, use
// middleware that sets it to the client's address.
func Handler[S any](a Acceptor[S], opts ...Option) http.Handler {
	h := newHandler(append([]Option{WithLogger(loggerOf(a))}, opts...))
	h.door, _ = any(a).(transport.Door)
	h.accept = func(ctx context.Context, w wire.Wire) error {
		_, err := a.Accept(ctx, w)
		return err
	}
	return h
}

func newHandler(opts []Option) *handler {
	h := new(handler)
	for _, o := range opts {
		o(&h.config)
	}
	h.logTo(h.log)
	return h
}

// mostLogged is the maximum number of logged bytes of a text from a request.
const mostLogged = 256

// logTo makes h log to l, or by default to slog.Default(), with the limits for unauthenticated
// peers.
func (h *handler) logTo(l *slog.Logger) {
	if l == nil {
		l = slog.Default()
	}
	h.log = boundlog.New(l, mostLogged)
}

type handler struct { // all fixed while it serves
	config
	door   transport.Door // nil: there is no door, or it was asked when the connection was made
	accept func(ctx context.Context, w wire.Wire) error
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, why := unfit(r); why != "" {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, why, status)
		h.log.Warn("not a WebSocket for asterisque", "addr", r.RemoteAddr, "path", r.URL.Path, "status", status, "error", why)
		return
	}
	hijack := &hijacker{ResponseWriter: w}
	place, err := h.enter(r, hijack.end)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		h.log.Warn("WebSocket not accepted", "addr", r.RemoteAddr, "path", r.URL.Path, "error", err)
		return
	}
	ws, err := websocket.Accept(hijack, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, OriginPatterns: h.origins})
	if err != nil { // the peer has received the error
		h.log.Warn("WebSocket not accepted", "addr", r.RemoteAddr, "path", r.URL.Path, "error", err)
		h.leave(place)
		return
	}
	if err := h.hand(r.Context(), newSocket(ws, hijack.conn, false, r.TLS, place)); err != nil {
		h.log.Warn("handshake failed", "addr", r.RemoteAddr, "path", r.URL.Path, "error", err)
	}
}

// hand passes s to accept, which may be the application's. If that panics, s is closed, because a
// server that recovers from the panic has given the connection away.
func (h *handler) hand(ctx context.Context, s wire.Wire) error {
	returned := false
	defer func() {
		if !returned {
			s.Close()
		}
	}()
	err := h.accept(ctx, s)
	returned = true
	return err
}

// enter returns the place of a request: that of its connection, or one of its own. It is nil if
// there is no door.
func (h *handler) enter(r *http.Request, lost func()) (transport.Place, error) {
	if h.door == nil {
		p, _ := r.Context().Value(placeKey{}).(transport.Place)
		return p, nil
	}
	return h.door.Enter(addrOf(r), lost)
}

// leave releases the admission place of a failed request; a connection keeps its own.
func (h *handler) leave(p transport.Place) {
	if h.door != nil {
		p.Leave()
	}
}

// unfit returns the status and the reason of a refusal of r, or nothing.
func unfit(r *http.Request) (status int, why string) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return http.StatusUpgradeRequired, fmt.Sprintf("this is a WebSocket of asterisque; connect with the subprotocol %s", Subprotocol)
	}
	var offered []string
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(header, ",") {
			offered = append(offered, strings.TrimSpace(name))
		}
	}
	if !slices.Contains(offered, Subprotocol) {
		return http.StatusBadRequest, fmt.Sprintf("the WebSocket subprotocol %s is spoken here, and the request offers %q; a page passes it to new WebSocket(url, %q)", Subprotocol,
			offered, Subprotocol)
	}
	return 0, ""
}

// hijacker puts a conn below the WebSocket.
type hijacker struct {
	http.ResponseWriter
	admittedRequest
	conn *conn // nil before Hijack
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	transport.BoundUnsent(c)
	h.took(c)
	h.conn = &conn{Conn: c}
	rw.Writer.Reset(h.conn)
	return h.conn, rw, nil
}
