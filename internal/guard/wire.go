package guard

import (
	"log/slog"
	"net"
	"time"

	"github.com/asterisque-go/asterisque/internal/native"
	"github.com/asterisque-go/asterisque/wire"
)

// patience is how long a caller waits for a method of a Wire.
const patience = time.Second

// Apart calls f, a method of w, on a goroutine of its own, and waits for its end for at most a
// second. The methods of a socket need no goroutine.
func Apart(log *slog.Logger, w wire.Wire, f func()) {
	if IsSocket(w) {
		f()
		return
	}
	over := make(chan struct{})
	go func() { // ends with f
		defer close(over)
		Run(log, "wire", f)
	}()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

// IsSocket reports whether w is the Wire of this module over a socket of the system, without
// application code.
func IsSocket(w wire.Wire) bool {
	_, is := w.(native.Wire)
	return is
}

// RemoteOf returns the address of the peer of w, or nil if w does not return one.
func RemoteOf(log *slog.Logger, w wire.Wire) (a net.Addr) {
	Run(log, "wire", func() { a = w.RemoteAddr() })
	return a
}
