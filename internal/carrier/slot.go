package carrier

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// transportSlot holds the present Wire of a Carrier, and the state of the Carrier.
//
// The reader and the writer use the Wire without the lock. Resume changes it under the lock, when
// neither of them runs. All other code reads it under the lock.
type transportSlot struct {
	wire wire.Wire
	tls  *tls.ConnectionState
	try  wire.TryWriter // nil if the Wire cannot write without blocking

	mu sync.Mutex
	// guarded by mu, as all below; admission place of the Wire; nil without
	place transport.Place
	shut  chan struct{} // closed when the Wire is closed; nil until a caller waits for it
	// nil until the Carrier is in state Away, or a caller waits for that
	suspended *suspendedTransport
	state     State
	closing   bool // the Wire is being closed, or is closed
	another   bool // the Wire was replaced since the last call of changed
}

// suspendedTransport is the part of a transportSlot that only state Away needs.
type suspendedTransport struct {
	parks  chan struct{} // closed at the next state Away; nil while no caller waits for it
	expiry *wait.Timer   // ends a Carrier in state Away; nil before the first time
}

// set makes w the Wire. The caller ensures that neither the reader nor the writer runs.
func (y *transportSlot) set(w wire.Wire, secure *tls.ConnectionState, place transport.Place) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.wire, y.tls, y.place = w, secure, place
	y.try, _ = w.(wire.TryWriter)
	y.closing, y.shut, y.another = false, nil, true
}

func (y *transportSlot) present() (wire.Wire, *tls.ConnectionState) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.wire, y.tls
}

// changed reports whether the Wire was replaced since the last call.
func (y *transportSlot) changed() (another bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	another, y.another = y.another, false
	return another
}

func (y *transportSlot) current() State {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.state
}

// to changes the state by e, and returns the former state. For ok see State.next.
func (y *transportSlot) to(e carrierEvent) (was State, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.toLocked(e)
}

func (y *transportSlot) toLocked(e carrierEvent) (was State, ok bool) {
	was = y.state
	y.state, ok = was.next(e)
	if ok && was == Away {
		y.suspended.expiry.Stop()
	}
	return was, ok
}

// park puts the Carrier into state Away, without an owner. After d it calls give, unless the
// Carrier was claimed before. It returns false if the session has ended.
func (y *transportSlot) park(d time.Duration, give func()) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if _, ok := y.toLocked(parked); !ok {
		return false
	}
	p := y.parkingLocked()
	p.expiry = wait.AfterFunc(d, give)
	if p.parks != nil {
		close(p.parks)
		p.parks = nil
	}
	return true
}

// claim makes the caller the owner of a Carrier in state Away. Otherwise it returns a channel that
// is closed at the next state Away.
func (y *transportSlot) claim() (ok bool, parks <-chan struct{}) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if _, ok := y.toLocked(claimed); ok {
		return true, nil
	}
	p := y.parkingLocked()
	if p.parks == nil {
		p.parks = make(chan struct{})
	}
	return false, p.parks
}

// parkingLocked returns y.suspended, creating it if necessary.
func (y *transportSlot) parkingLocked() *suspendedTransport {
	if y.suspended == nil {
		y.suspended = new(suspendedTransport)
	}
	return y.suspended
}

// isShut returns a channel that is closed when the Wire is closed.
func (y *transportSlot) isShut() <-chan struct{} {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.shut == nil {
		y.shut = make(chan struct{})
	}
	return y.shut
}

// shuts reports whether the Wire is being closed, or is closed.
func (y *transportSlot) shuts() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.closing
}

// close closes the Wire. Each call returns when the Wire is closed.
func (y *transportSlot) close(log *slog.Logger) {
	y.mu.Lock()
	if y.closing {
		shut := y.shut
		y.mu.Unlock()
		<-shut
		return
	}
	y.closing = true
	w := y.wire
	if guard.IsSocket(w) {
		w.Close()
	} else { // Close may take long
		if y.shut == nil {
			y.shut = make(chan struct{})
		}
		y.mu.Unlock()
		guard.Apart(log, w, func() { w.Close() })
		y.mu.Lock()
	}
	defer y.mu.Unlock()
	if y.place != nil {
		y.place.Leave() // before the peer reconnects over another Wire, which needs a place
		y.place = nil
	}
	if y.shut != nil {
		close(y.shut)
	}
	y.shut = *over
}
