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

// way is the present Wire of a Carrier, and how far the Carrier has got with it.
//
// The reader and the writer use the Wire without the lock. Resume changes it under the lock, when
// neither of them runs. All others look at it under the lock.
type way struct {
	wire wire.Wire
	tls  *tls.ConnectionState
	try  wire.TryWriter // nil if the Wire cannot write without waiting

	mu sync.Mutex
	// guarded by mu, as all below; what the Wire has at the door; nil without
	place   transport.Place
	shut    chan struct{} // closed when the Wire is; nil until somebody waits for that
	away    *parking      // nil until the Carrier is away, or somebody waits for that
	state   State
	closing bool // somebody closes the Wire, or has closed it
	another bool // there is another Wire since changed was called
}

// parking is what a way has to remember of being away.
type parking struct {
	parks  chan struct{} // closed when the Carrier is away next; nil while nobody waits for that
	expiry *wait.Timer   // ends a Carrier that is away; nil before the first time
}

// set makes w the Wire. Nobody reads or writes meanwhile.
func (y *way) set(w wire.Wire, secure *tls.ConnectionState, place transport.Place) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.wire, y.tls, y.place = w, secure, place
	y.try, _ = w.(wire.TryWriter)
	y.closing, y.shut, y.another = false, nil, true
}

func (y *way) present() (wire.Wire, *tls.ConnectionState) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.wire, y.tls
}

// changed reports whether there is another Wire since it was called last.
func (y *way) changed() (another bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	another, y.another = y.another, false
	return another
}

func (y *way) current() State {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.state
}

// to changes the state by e, and returns the former one. See State.next for ok.
func (y *way) to(e event) (was State, ok bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.toLocked(e)
}

func (y *way) toLocked(e event) (was State, ok bool) {
	was = y.state
	y.state, ok = was.next(e)
	if ok && was == Away {
		y.away.expiry.Stop()
	}
	return was, ok
}

// park lets the Carrier be away, without an owner. After d give is called, unless the Carrier was
// claimed before. park reports false if the session has ended.
func (y *way) park(d time.Duration, give func()) bool {
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

// claim makes the caller the owner of a Carrier that is away. Otherwise it returns a channel that
// is closed when the Carrier is away.
func (y *way) claim() (ok bool, parks <-chan struct{}) {
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

// parkingLocked returns what there is to remember of being away, for something to be added.
func (y *way) parkingLocked() *parking {
	if y.away == nil {
		y.away = new(parking)
	}
	return y.away
}

// isShut returns a channel that is closed when the Wire is closed.
func (y *way) isShut() <-chan struct{} {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.shut == nil {
		y.shut = make(chan struct{})
	}
	return y.shut
}

// shuts reports whether somebody closes the Wire, or has closed it.
func (y *way) shuts() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.closing
}

// close closes the Wire. Repeated calls do nothing but wait until it is closed.
func (y *way) close(log *slog.Logger) {
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
	} else { // which may take its time
		if y.shut == nil {
			y.shut = make(chan struct{})
		}
		y.mu.Unlock()
		guard.Apart(log, w, func() { w.Close() })
		y.mu.Lock()
	}
	defer y.mu.Unlock()
	if y.place != nil {
		y.place.Leave() // before anybody comes back over another Wire, which needs a place
		y.place = nil
	}
	if y.shut != nil {
		close(y.shut)
	}
	y.shut = *over
}
