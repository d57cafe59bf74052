package asterisque

import (
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/forward"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// ErrElsewhere is the error of [Node.Accept] if the session of a Wire continues at another node, to
// which this one relays it: see Resume.Elsewhere.
var ErrElsewhere error = codec.ErrUnavailable.Withf("the session goes on at another node, to which its wire is relayed")

// relayedSession holds the two Wires of a session that continues at another node.
type relayedSession struct { // fixed
	near, far forward.Side // the peer's, and the other node's
	session   SessionID
	patience  time.Duration // bounds the time in which a side takes nothing
	log       *slog.Logger
}

func newRelaying(cfg *config, peer wire.Wire, a *acceptedPeer) *relayedSession {
	return &relayedSession{
		near:    forward.Side{Wire: peer, Largest: a.largest},
		far:     forward.Side{Wire: a.elsewhere, Largest: a.MaxFrame},
		session: a.Session, patience: cfg.writeTimeout, log: cfg.log,
	}
}

// run relays frames between the two Wires until either ends, or end is called.
func (r *relayedSession) run() {
	log := r.log.With("session", r.session.short(), "addr", guard.RemoteOf(r.log, r.near.Wire))
	log.Info("session is relayed")
	err := forward.Between(r.log, r.patience, r.near, r.far)
	log.Info("session is relayed no more", "error", err)
}

// end closes both Wires. The peer reconnects, to a running node.
func (r *relayedSession) end() {
	for _, w := range []wire.Wire{r.near.Wire, r.far.Wire} {
		guard.Apart(r.log, w, func() { w.Close() })
	}
}

// endRelays ends all relays at the same time: a Wire may take a moment to close.
func endRelays(list []*relayedSession) {
	var all sync.WaitGroup
	for _, r := range list {
		all.Go(r.end)
	}
	all.Wait()
}
