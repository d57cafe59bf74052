package asterisque

import (
	"context"
	"slices"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/handshake"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// The entitlement to resume a session, and its cost. Package carrier moves the session from one
// Wire to the next.

// resumeRequest is a new Wire for a suspended session.
type resumeRequest struct {
	wire     wire.Wire
	place    transport.Place // of the Wire; nil on the side that connected
	about    Peer            // from the handshake over the Wire
	received uint64          // number of countable frames that the peer has
	// new grant for the peer; nil on the side that connected
	grant *Grant
	used  [message.SecretSize]byte // the secret that the peer has presented; for confirm
	// sends the number of frames that this side has to the peer; nil on the side that connected
	confirm func(received uint64) error
}

// Away reports whether the session is suspended: it has lost its Wire and waits for another one;
// see [WithResume].
func (s *Session) Away() bool { return s != nil && s.calls.Carrier.Away() }

// Resumable reports whether both sides have agreed to resume the session over another Wire when it
// loses its present one; see [WithResume].
func (s *Session) Resumable() bool { return s != nil && s.res != nil }

// goesOnFor reports whether a peer with a valid secret and identity may resume the session: its
// Subject is the same, its settings are unchanged, and the frames that it lacks are still kept.
func (s *Session) goesOnFor(a *handshake.Agreement, g *Grant, codecs []string, received uint64) bool {
	return g.Subject == s.owner().Subject && a.Settings == s.res.agreed && slices.Contains(codecs, s.calls.Coder.Values.Name()) && s.calls.Carrier.Has(received)
}

// comeBack resumes the session over another Wire after the loss of the old one, which is closed.
// The caller has made all checks of the peer.
func (s *Session) comeBack(ctx context.Context, b *resumeRequest) error {
	over := carrier.Comeback{
		Wire: b.wire, TLS: b.about.TLS, Place: b.place, Received: b.received,
		Renew: func() { s.renew(b) }, Settled: s.res.Settle,
	}
	if b.confirm != nil {
		over.Check = func() error {
			if !s.res.Entitles(b.used) {
				return errOvertaken // although the peer was entitled when its handshake arrived
			}
			return nil
		}
		over.Confirm = func(received uint64, missing int) error {
			s.res.Spend(missing)
			return b.confirm(received)
		}
	}
	err := s.calls.Carrier.Resume(ctx, &over)
	if err != nil && err == ctx.Err() {
		return aborts.OfContext(ctx)
	}
	return err
}

// errOvertaken is the error for a peer if its handshake was overtaken by a later one.
var errOvertaken = codec.ErrUnavailable.Withf("the peer has come back over another wire")

// renew is called when the session has another Wire, and no goroutine reads or writes.
func (s *Session) renew(b *resumeRequest) {
	(*lifecycle)(s).watchCertificate() // the certificate may have changed
	if b.grant != nil {
		s.heed(b.grant)
	}
	s.cfg.log.Info("session goes on", "session", s, "addr", b.about.RemoteAddr)
}

// heed applies the Grant of a resume.
func (s *Session) heed(g *Grant) {
	s.calls.SetOffer(g.offer())
	granted := g.limits()
	s.res.mu.Lock()
	same := granted == s.res.granted
	s.res.granted = granted
	s.res.mu.Unlock()
	if !same {
		// valid: they were checked with the Grant
		s.SetLimits(granted.inbound, granted.outbound)
	}
}

// former returns the session that a peer wants to resume, if the peer has its secret and its
// identity, or the record that names another node as its owner. An error means that another node
// may have the session.
func (n *Node) former(ctx context.Context, was *handshake.Proof, p *Peer) (_ *Session, elsewhere *SessionRecord, err error) {
	if was.Session == (SessionID{}) {
		return nil, nil, nil
	}
	n.awaitBegin(ctx, was.Session)
	r, ok, err := n.records.get(ctx, was.Session)
	switch {
	case err != nil && n.cfg.elsewhere != nil:
		return nil, nil, errAnywhere
	case !ok:
		return nil, nil, nil
	}
	n.mu.Lock()
	s := n.resumable[was.Session]
	n.mu.Unlock()
	switch {
	case s == nil && r.Node != n.cfg.id:
		return nil, &r, nil
	case s == nil || !s.res.Entitles(was.Secret) || !s.res.ProvedBy(p.identity()):
		return nil, nil, nil // the session decides: the record may be older
	}
	return s, nil, nil
}

// awaitBegin waits for the begin of a session. Its peer may have lost the Wire already.
func (n *Node) awaitBegin(ctx context.Context, id SessionID) {
	n.mu.Lock()
	begins := n.beginning[id]
	n.mu.Unlock()
	if begins == nil {
		return
	}
	select {
	case <-begins:
	case <-ctx.Done():
	}
}

// IsResumable reports whether the node has a session with this id that the connecting peer may
// resume; see [WithResume].
func (n *Node) IsResumable(id SessionID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.resumable[id] != nil
}
