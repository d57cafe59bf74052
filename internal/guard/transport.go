package guard

import (
	"context"
	"crypto/tls"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// Calls of transports that may be the application's: Wires, Listeners, dialling, and callbacks of
// TLS.

// CloseListener closes ln.
func CloseListener(log *slog.Logger, ln wire.Listener) {
	Run(log, "listener", func() { ln.Close() })
}

// Dial returns a Wire to the listener at url.
func Dial(ctx context.Context, log *slog.Logger, url string, secure *tls.Config) (w wire.Wire, err error) {
	err = codec.ErrUnavailable.Withf("dialling panicked: the log says why")
	Run(log, "dialler", func() {
		w, err = wire.Dial(ctx, url, wire.Options{TLS: secure})
	})
	return w, err
}

// Accept returns the next Wire of ln, which may be the application's.
func Accept(log *slog.Logger, ln wire.Listener) (w wire.Wire, err error) {
	if !Run(log, "listener", func() { w, err = ln.Accept() }) {
		err = codec.ErrUnavailable.Withf("the listener panicked: the log says why")
	}
	return w, err
}
