package asterisque

import (
	"container/list"
	"net"
	"sync"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// admission bounds what peers cost that have not completed their handshake, and how many sessions come from one address.
type admission struct {
	halfOpen, perAddress int // at most; 0: any number; fixed

	mu        sync.Mutex
	waiting   list.List      // guarded by mu, as sessions; of wire.Wire, those in their handshake, oldest first
	addresses map[string]int // by address, without port: wires in their handshake, and sessions
}

// enter lets w, which has just been accepted, begin its handshake, and returns what is to be called when that is over. If there are too many in theirs, the oldest one has to go: an honest
// peer needs a moment, and one that says nothing does not keep others out. refusal is nil, or what the peer is to be told.
func (a *admission) enter(w wire.Wire) (over func(), refusal error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.halfOpen > 0 && a.waiting.Len() >= a.halfOpen {
		oldest := a.waiting.Front()
		a.waiting.Remove(oldest)
		go oldest.Value.(wire.Wire).Close() // which may take a moment; it ends by itself
	}
	place := a.waiting.PushBack(w)
	over = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waiting.Remove(place) // does nothing if it had to go
	}
	if address := addressOf(w); address != "" && a.perAddress > 0 {
		if a.addresses == nil {
			a.addresses = make(map[string]int)
		}
		if a.addresses[address]++; a.addresses[address] > a.perAddress {
			refusal = codec.ErrOverloaded.Withf("there are %d sessions from %s already, and no more are allowed", a.perAddress, address)
		}
	}
	return over, refusal
}

// gone says that what has entered is over: the handshake failed, or led to no session of its own, or its session has ended.
func (a *admission) gone(w wire.Wire) {
	address := addressOf(w)
	if address == "" || a.perAddress == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.addresses[address]--; a.addresses[address] <= 0 {
		delete(a.addresses, address)
	}
}

// addressOf returns the host that w comes from, or nothing for wires that do not cross a network.
func addressOf(w wire.Wire) string {
	host, _, err := net.SplitHostPort(w.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return host
}
