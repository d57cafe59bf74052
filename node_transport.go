package asterisque

import (
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// Transports that may be the application's: its Wires and Listeners, what dials them, and what TLS
// asks it.

// closeListener closes ln.
func closeListener(log *slog.Logger, ln wire.Listener) {
	guard.Run(log, "listener", func() { ln.Close() })
}

// dialURL returns a Wire to whoever listens at url.
func dialURL(ctx context.Context, log *slog.Logger, url string, secure *tls.Config) (w wire.Wire, err error) {
	err = codec.ErrUnavailable.Withf("dialling panicked: the log says why")
	guard.Run(log, "dialler", func() {
		w, err = wire.Dial(ctx, url, wire.Options{TLS: secure})
	})
	return w, err
}

// nextWire returns the next Wire of ln, which may be the application's.
func nextWire(log *slog.Logger, ln wire.Listener) (w wire.Wire, err error) {
	if !guard.Run(log, "listener", func() { w, err = ln.Accept() }) {
		err = codec.ErrUnavailable.Withf("the listener panicked: the log says why")
	}
	return w, err
}
