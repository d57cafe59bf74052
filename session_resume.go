package asterisque

import (
	"context"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Who may resume a session, and what that costs. How the session leaves a Wire and goes on over the
// next one is package carrier's.

// comeback is another Wire for a session that is away.
type comeback struct {
	wire     wire.Wire
	place    transport.Place // of the Wire; nil on the side that connected
	about    Peer            // what the handshake over it has told
	received uint64          // how many countable frames the peer has
	// what the peer gets from now on; nil on the side that connected
	grant *Grant
	used  [message.SecretSize]byte // the secret that the peer has shown; for confirm
	// tells the peer how many this side has; nil on the side that connected
	confirm func(received uint64) error
}

// Away reports whether the session has lost its Wire and waits for another one; see [WithResume].
func (s *Session) Away() bool { return s != nil && s.carrier.Away() }

// Resumable reports whether both sides have agreed that the session goes on over another Wire when
// it loses the one that it has; see [WithResume].
func (s *Session) Resumable() bool { return s != nil && s.res != nil }

// goesOnFor reports whether a peer with the right secret and identity may resume the session: it is
// still the same to the application, it repeats what it has promised, and what it lacks is still
// there.
func (s *Session) goesOnFor(a *agreement, g *Grant, codecs []string, received uint64) bool {
	return g.Subject == s.owner.subject && a.promises == s.res.agreed && slices.Contains(codecs, s.codec.Name()) && s.carrier.Has(received)
}

// comeBack lets the session go on over another Wire, when it has lost its old one, which is closed.
// The caller has made all checks of the peer.
func (s *Session) comeBack(ctx context.Context, b *comeback) error {
	over := carrier.Comeback{
		Wire: b.wire, TLS: b.about.TLS, Place: b.place, Received: b.received,
		Renew: func() { s.renew(b) }, Settled: s.res.settle,
	}
	if b.confirm != nil {
		over.Check = func() error {
			if !s.res.entitles(b.used) {
				return errOvertaken // although the peer was entitled when its handshake arrived
			}
			return nil
		}
		over.Confirm = func(received uint64, missing int) error {
			s.res.paces(resumeCost + missing)
			return b.confirm(received)
		}
	}
	err := s.carrier.Resume(ctx, &over)
	if err != nil && err == ctx.Err() {
		return contextError(ctx)
	}
	return err
}

// errOvertaken is why a peer is not entitled any more: another handshake of it has overtaken that.
var errOvertaken = codec.ErrUnavailable.Withf("the peer has come back over another wire")

// renew is called when the session has another Wire, and nobody reads or writes.
func (s *Session) renew(b *comeback) {
	(*upper)(s).watchCertificate() // which may be another one now
	if b.grant != nil {
		s.heed(b.grant)
	}
	s.cfg.log.Info("session goes on", "session", s, "addr", b.about.RemoteAddr)
}

// heed lets what the application has granted at a resume hold from now on.
func (s *Session) heed(g *Grant) {
	s.service, s.highest, s.granted = g.Service, *g.MaxPriority, g.standards()
	granted := g.limits()
	s.res.mu.Lock()
	same := granted == s.res.granted
	s.res.granted = granted
	s.res.mu.Unlock()
	if !same {
		// which fit: they were checked with the Grant
		s.SetLimits(granted.inbound, granted.outbound)
	}
}
