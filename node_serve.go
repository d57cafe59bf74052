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
	back := backoff{first: 5 * time.Millisecond, most: time.Second}
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
			wait.Sleep(ctx, back.next())
			continue
		}
		back.step = 0
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
