package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// Transports that may be the application's: its Wires and Listeners, what dials them, and what TLS
// asks it. A session over one is in session_lost.go.

// closeListener closes ln.
func (n *Node) closeListener(ln wire.Listener) {
	guard.Run(n.cfg.log, "listener", func() { ln.Close() })
}

// dial returns a Wire to who listens at url.
func (n *Node) dial(ctx context.Context, url string) (w wire.Wire, err error) {
	err = codec.ErrUnavailable.Withf("dialling panicked: the log says why")
	guard.Run(n.cfg.log, "dialler", func() {
		w, err = wire.Dial(ctx, url, wire.Options{TLS: n.cfg.tls})
	})
	return w, err
}

// acceptFrom returns the next Wire of ln, which may be the application's.
func (n *Node) acceptFrom(ln wire.Listener) (w wire.Wire, err error) {
	if !guard.Run(n.cfg.log, "listener", func() { w, err = ln.Accept() }) {
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
			guard.Apart(n.cfg.log, w, func() { w.Close() })
		}
	}()
	ok = guard.Run(n.cfg.log, "handshake", func() { err = f(ctx) })
	switch {
	case !ok:
		return neverSent(codec.ErrUnavailable.Withf("the handshake panicked: the log says why"))
	case err != nil && n.ctx.Err() != nil:
		return errNodeClosed
	}
	return err
}
