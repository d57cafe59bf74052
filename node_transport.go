package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// Transports that may be the application's: its Wires and Listeners, what dials them, and what TLS
// asks it.

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

// nextWire returns the next Wire of ln, which may be the application's.
func (n *Node) nextWire(ln wire.Listener) (w wire.Wire, err error) {
	if !guard.Run(n.cfg.log, "listener", func() { w, err = ln.Accept() }) {
		err = codec.ErrUnavailable.Withf("the listener panicked: the log says why")
	}
	return w, err
}

// guarded calls f, the handshake h, and what follows from it: the Wire, and what is asked about it,
// may be the application's. The Wire is closed unless f returns.
func (n *Node) guarded(h *handshake, f func() error) (err error) {
	ok := false
	defer func() {
		if !ok {
			guard.Apart(n.cfg.log, h.w, func() { h.w.Close() })
		}
	}()
	ok = guard.Run(n.cfg.log, "handshake", func() { err = f() })
	switch {
	case !ok:
		return neverSent(codec.ErrUnavailable.Withf("the handshake panicked: the log says why"))
	case err != nil && n.ctx.Err() != nil:
		return errNodeClosed
	}
	return err
}
