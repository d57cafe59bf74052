//go:build !js

package wswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	patience = 10 * time.Second // for the whole request of a peer, and for the answer
	backlog  = 128              // wires that can wait to be accepted
	maxHead  = 16 << 10         // bytes of a request's header
)

// listener is an HTTP server with one route. It answers one request on each connection.
type listener struct {
	url     string // these are fixed
	here    bool   // at a loopback address
	conns   *limitedListener
	tls     *tls.Config // nil: without TLS
	handler *handler
	server  *http.Server

	start   sync.Once      // starts serve
	waiting chan wire.Wire // connected and not accepted
	closed  chan struct{}
	once    sync.Once // closes closed
}

func listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	if err := checkListen(u); err != nil {
		return nil, transport.BadURL(err)
	}
	var secure *tls.Config
	if u.Scheme == "wss" {
		var err error
		if secure, err = transport.ServerTLS(o.TLS, "http/1.1"); err != nil {
			return nil, err
		}
	}
	ln, err := transport.ListenTCP(ctx, net.JoinHostPort(u.Hostname(), u.Port()), o.ReusePort)
	if err != nil {
		return nil, err
	}
	l := &listener{url: urlOf(u, ln.Addr()), conns: &limitedListener{Listener: ln}, handler: newHandler(nil), waiting: make(chan wire.Wire, backlog), closed: make(chan struct{})}
	l.here, l.tls = ln.Addr().(*net.TCPAddr).IP.IsLoopback(), secure
	l.handler.accept = l.queue
	l.server = &http.Server{
		Handler: serverRoute{u.Path, l.handler}, ConnContext: withPlace, MaxHeaderBytes: maxHead,
		ReadTimeout: patience, ReadHeaderTimeout: patience, WriteTimeout: patience,
	}
	return l, nil
}

// Guard implements transport.Guarded.
func (l *listener) Guard(d transport.Door) {
	l.start.Do(func() {
		l.conns.door = d
		if logger := loggerOf(d); logger != nil {
			l.handler.logTo(logger)
		}
		l.server.ErrorLog = log.New(serverLog{l.handler.log}, "", 0)
		go l.serve() // ends with the server, which Close closes
	})
}

func (l *listener) serve() {
	var ln net.Listener = l.conns
	if l.tls != nil {
		ln = tls.NewListener(ln, l.tls)
	}
	l.server.Serve(ln)
	l.Close() // so that Accept returns when the server has ended by itself
}

// checkListen returns an error if u is no URL to listen at.
func checkListen(u *url.URL) error {
	example := fmt.Sprintf("for example %s://127.0.0.1:8080/rpc", u.Scheme)
	switch {
	case u.Opaque != "":
		return fmt.Errorf("two slashes are missing behind the scheme; %s", example)
	case u.Port() == "":
		return fmt.Errorf("the port is missing; %s", example)
	case u.User != nil:
		return errors.New("a user has no meaning here")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("a query has no meaning here")
	case u.Fragment != "":
		return errors.New("a fragment has no meaning here")
	}
	return nil
}

// urlOf returns u with the actual address.
func urlOf(u *url.URL, a net.Addr) string {
	found := *u
	found.Host = a.String()
	return found.String()
}

// serverRoute is the one route of a server.
type serverRoute struct {
	path string // of the URL of Listen; "" is "/"
	h    http.Handler
}

// ServeHTTP implements http.Handler.
func (o serverRoute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close") // unless this becomes a WebSocket
	if r.URL.Path != o.path && !(r.URL.Path == "/" && o.path == "") {
		http.Error(w, "nothing is here; the WebSocket of asterisque is at "+max(o.path, "/"), http.StatusNotFound)
		return
	}
	o.h.ServeHTTP(w, r)
}

// socketWire is a socket, with or without TLS.
type socketWire interface {
	refuse(code websocket.StatusCode, reason string)
}

// queue puts w into the queue for Accept. It does not block, so that peers cannot pile up requests.
func (l *listener) queue(_ context.Context, w wire.Wire) error {
	select {
	case l.waiting <- w:
	default:
		why := fmt.Errorf("%d connections wait to be accepted already", backlog)
		w.(socketWire).refuse(websocket.StatusTryAgainLater, why.Error())
		w.Close()
		return why
	}
	select {
	case <-l.closed: // possibly too late for Close to find the queued Wire
		w.Close()
	default:
	}
	return nil
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	select {
	case <-l.closed:
	default:
		l.Guard(nil) // unless it was called before
		select {
		case w := <-l.waiting:
			return w, nil
		case <-l.closed:
		}
	}
	return nil, fmt.Errorf("wire: accept at %s: %w", transport.ShowURL(l.url), net.ErrClosed)
}

// Close implements wire.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.server.Close() // its only error is that it was closed already
		l.conns.Close()  // the server may not know it yet
		for {
			select {
			case w := <-l.waiting:
				w.Close()
			default:
				return
			}
		}
	})
	return nil
}

// File returns a duplicate of the socket: see wire.ListenerFile.
func (l *listener) File() (*os.File, error) { return l.conns.Listener.(*net.TCPListener).File() }

// Private implements wire.Private.
func (l *listener) Private() bool { return l.here || l.tls != nil }

// URL implements wire.Listener.
func (l *listener) URL() string { return l.url }
