package asterisque

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// ListenAndServe listens at a URL such as "tcp://127.0.0.1:5330" and serves the peers that connect.
// It combines wire.Listen and Serve, both until life ends.
func (n *Node) ListenAndServe(life context.Context, url string) error {
	if err := n.ready(); err != nil {
		return err
	}
	ln, err := wire.Listen(life, url, wire.Options{TLS: n.cfg.tls, ReusePort: n.cfg.reusePort})
	if err != nil {
		return err
	}
	return n.serveAt(life, ln, url)
}

// Serve accepts sessions from ln until life ends or the node is closed, and then closes ln and
// returns nil. The sessions remain; see Shutdown and Close. The error is that of a failed listener.
// A connection that fails its handshake is logged, and has no effect on other connections.
//
// Serve retries if the process, or the system, has no descriptor or memory for another connection
// (EMFILE, ENFILE, ENOBUFS, ENOMEM). It logs the error, and tries again after 5 milliseconds, later
// after a second. New connections wait in the queue of the system meanwhile, and sessions continue.
// See Admission.HalfOpen for silent connections.
func (n *Node) Serve(life context.Context, ln wire.Listener) error {
	if err := n.ready(); err != nil {
		ln.Close()
		return err
	}
	return n.serveAt(life, ln, ln.URL())
}

// serveAt is Serve for a listener at url, which the errors of ln may contain.
func (n *Node) serveAt(ctx context.Context, ln wire.Listener, url string) error {
	if p, ok := ln.(wire.Private); ok && !p.Private() && n.cfg.resumeFor > 0 && !n.cfg.plainCredentials {
		ln.Close()
		return handshake.Exposed(transport.ShowURL(ln.URL()))
	}
	if !n.listeners.Add(ln) {
		guard.CloseListener(n.cfg.log, ln)
		return handshake.ErrNodeClosed
	}
	n.cfg.service.serve("by the node that was made", n.cfg.made)
	if g, ok := ln.(transport.Guarded); ok {
		g.Guard(n)
	}
	stop := context.AfterFunc(ctx, func() { guard.CloseListener(n.cfg.log, ln) })
	defer stop()
	defer func() {
		guard.CloseListener(n.cfg.log, ln)
		n.listeners.Remove(ln)
	}()
	back := wait.Backoff{First: 5 * time.Millisecond, Most: time.Second}
	for {
		w, err := guard.Accept(n.cfg.log, ln)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // may be temporary: too many open files, for example
			err = transport.HideURL(transport.HideURL(err, url), ln.URL())
			if !passes(err) {
				return err
			}
			n.cfg.log.Warn("accepting failed", "url", transport.ShowURL(ln.URL()), "error", err)
			wait.Sleep(ctx, back.Next())
			continue
		}
		back.Reset()
		if !n.shakeApart(ctx, w) {
			return nil
		}
	}
}

// shakeApart runs the handshake over a Wire that Serve has accepted, on a goroutine for which Close
// waits. A rejected Wire needs no goroutine. shakeApart returns false if the node is closed.
func (n *Node) shakeApart(ctx context.Context, w wire.Wire) bool {
	h, refused := n.enter(w)
	if refused != nil {
		n.cfg.log.Warn("handshake failed", "addr", h.From, "error", refused)
		return true
	}
	n.mu.Lock()
	closed := n.sessions == nil
	if !closed {
		n.accepts.Go(func() { n.shakeAndLog(ctx, h) }) // ends with the handshake
	}
	n.mu.Unlock()
	if closed {
		h.Place.Leave()
		guard.Apart(n.cfg.log, w, func() { w.Close() })
	}
	return !closed
}

// Enter implements transport.Door, for listeners and handlers that need a place before the Wire.
func (n *Node) Enter(from net.Addr, lost func()) (transport.Place, error) {
	p, refused := n.admission.Enter(from, func() {
		n.cfg.log.Warn("handshake failed", "addr", from, "error", admission.ErrLost)
		lost()
	})
	if refused != nil {
		n.cfg.log.Warn("handshake failed", "addr", from, "error", refused)
		return nil, refused
	}
	p.Watch()
	return p, nil
}

// passes reports whether a later Accept may succeed after err.
func passes(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ECONNABORTED)
}

// shakeAndLog is shake for Serve, which logs the error.
func (n *Node) shakeAndLog(ctx context.Context, h *nodeHandshake) {
	if _, err := n.shake(ctx, h); err != nil && err != ErrElsewhere {
		n.cfg.log.Warn("handshake failed", "addr", h.From, "error", err)
	}
}

// Connect connects to the node that listens at a URL, waits for the first session (unless
// ReconnectConfig.Background is set), and from then on maintains a session, until Close or the end
// of life. life governs the whole Connection. Failed attempts are repeated, the first ones as well,
// unless their error is final. Final errors are:
//
//   - The URL can never be used ([wire.ErrURL]), or this node is closed.
//   - The application of either side rejects the other one, with ErrUnauthorized or ErrHandshake
//     ([Access].Accept, [Access].Credential).
//   - The announcements of the two nodes do not match: the version of the protocol, or the value
//     codecs (ErrHandshake).
//
// A final error ends the Connection at once, also later: its state becomes Lost, Err returns the
// error, and ReconnectConfig.OnState is called. With ReconnectConfig.RetryFatal only the first kind
// is final. Any other error may be temporary, and is retried. No error of TLS is final, neither an
// alert nor a certificate error, because either side may renew certificates and authorities. A peer
// with another protocol is not final either, as it may be a load balancer without a server.
// [Connection.NotConnectedError] and the node's log report the current error;
// ReconnectConfig.MaxOutage and life bound the time of the attempts. The page [about reconnecting]
// has a table of errors.
//
// [about reconnecting]: https://github.com/asterisque-go/asterisque/blob/main/docs/reconnecting.md
func (n *Node) Connect(life context.Context, url string, how ReconnectConfig) (*Connection, error) {
	if err := n.ready(); err != nil {
		return nil, err
	}
	if err := how.check(); err != nil {
		return nil, err
	}
	c := newConnection(n, life, url, how)
	if !n.connections.Add(c) {
		c.end(handshake.ErrNodeClosed)
		return nil, handshake.ErrNodeClosed
	}
	go c.run() // ends with c.ctx
	if how.Background {
		return c, nil
	}
	if _, a := c.wait(life); a != nil {
		c.Close()
		return nil, a
	}
	return c, nil
}

// check returns an error that names each duration that is too short, or nil.
func (r *ReconnectConfig) check() error {
	var m optionErrors
	for _, t := range []struct {
		name  string
		value time.Duration
	}{{"First", r.First}, {"Most", r.Most}, {"MaxOutage", r.MaxOutage}} {
		if t.value > 0 {
			m.atLeast("ReconnectConfig."+t.name, t.value, leastWait)
		}
	}
	return m.asError()
}
