package asterisque

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// Transports that may be the application's: its Wires and Listeners, what dials them, and what TLS
// asks it. A session over one is in session_lost.go.

// patience is how long a Wire may take to close before nobody waits for it any more.
const patience = time.Second

// apart calls f, a method of w, on a goroutine of its own, and waits for the end of that. Those of
// a socket need none.
func apart(log *slog.Logger, w wire.Wire, f func()) {
	if isSocket(w) {
		f()
		return
	}
	over := make(chan struct{})
	go func() { // ends with f
		defer close(over)
		guard(log, "wire", f)
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

// isSocket reports whether w is the Wire of this module over a socket of the system, with nothing
// of the application in it.
func isSocket(w wire.Wire) bool {
	_, tries := w.(wire.TryWriter)
	_, keeps := w.(keeper)
	return tries && keeps
}

// remoteOf returns the address of the peer of w, or nil if w does not say.
func remoteOf(log *slog.Logger, w wire.Wire) (a net.Addr) {
	guard(log, "wire", func() { a = w.RemoteAddr() })
	return a
}

// closeListener closes ln.
func (n *Node) closeListener(ln wire.Listener) {
	guard(n.cfg.log, "listener", func() { ln.Close() })
}

// dial returns a Wire to who listens at url.
func (n *Node) dial(ctx context.Context, url string) (w wire.Wire, err error) {
	err = codec.ErrUnavailable.Withf("dialling panicked: the log says why")
	guard(n.cfg.log, "dialler", func() {
		w, err = wire.Dial(ctx, url, wire.Options{TLS: n.cfg.tls})
	})
	return w, err
}

// acceptFrom returns the next Wire of ln, which may be the application's.
func (n *Node) acceptFrom(ln wire.Listener) (w wire.Wire, err error) {
	if !guard(n.cfg.log, "listener", func() { w, err = ln.Accept() }) {
		err = codec.ErrUnavailable.Withf("the listener panicked: the log says why")
	}
	return w, err
}

// shake calls f, a handshake over w, whose context ends with the node as well. w, and what is asked
// about it, may be the application's.
func (n *Node) shake(ctx context.Context, w wire.Wire, f func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(n.ctx, func() { cancel(errNodeClosed) })()
	ok := false
	defer func() {
		if !ok {
			apart(n.cfg.log, w, func() { w.Close() })
		}
	}()
	ok = guard(n.cfg.log, "handshake", func() { err = f(ctx) })
	switch {
	case !ok:
		return neverSent(codec.ErrUnavailable.Withf("the handshake panicked: the log says why"))
	case err != nil && n.ctx.Err() != nil:
		return errNodeClosed
	}
	return err
}
