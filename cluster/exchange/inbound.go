package exchange

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/wire"
)

// takeInbound relays a Wire from the cluster to a node here.
func (x *Exchange) takeInbound(r *registeredNode, w wire.Wire) {
	begun := x.goroutines.begin(func() { // ends with the Wire, which ends with x.ctx
		defer context.AfterFunc(x.ctx, func() { w.Close() })()
		if err := x.relayInbound(r, w); err != nil {
			x.cfg.Logger.Warn("exchange: a session from the cluster ends", "node", r.member.Name+" "+r.member.ID, "error", err)
		}
		w.Close()
	})
	if !begun {
		w.Close()
	}
}

// relayInbound reads the first frame, before which the peer is unknown, and then relays.
func (x *Exchange) relayInbound(r *registeredNode, w wire.Wire) error {
	if !x.sessions.enter() {
		return full("the exchange relays %d sessions, and no more are allowed at once", x.sessions.most)
	}
	defer x.sessions.leave()
	first, err := firstFrame(w, x.cfg.Answer)
	if err != nil {
		return err
	}
	far, err := x.acceptInbound(w, r)
	if err != nil {
		return err
	}
	defer far.leave()
	if err := far.wire.WriteFrames([][]byte{first}); err != nil {
		return err
	}
	return x.relay(w, far.wire)
}

// acceptInbound makes a node accept a Wire of the cluster, if the policy allows it.
func (x *Exchange) acceptInbound(w wire.Wire, r *registeredNode) (*farSide, error) {
	who, ok := x.inboundIdentity(w, r.member.Identity)
	if !ok {
		x.refused.Add(1)
		return nil, fmt.Errorf("the policy does not let a node of the cluster reach %q", r.member.Identity)
	}
	return x.visit(x.ctx, relayproto.Visitor{Identity: who, Private: wire.IsPrivate(w)}, r)
}

// firstFrame waits for the first frame of a Wire, at most for most.
func firstFrame(w wire.Wire, most time.Duration) ([]byte, error) {
	late := time.AfterFunc(most, func() { w.Close() })
	defer late.Stop()
	frame, err := w.ReadFrame(relayproto.Largest)
	return bytes.Clone(frame), err
}

// inboundIdentity returns the identity by which the peer of a Wire may reach another one.
func (x *Exchange) inboundIdentity(w wire.Wire, to string) (identity string, ok bool) {
	if s, secure := w.(wire.Secure); secure {
		if chains := s.ConnectionState().VerifiedChains; len(chains) > 0 {
			return x.policy.proves(chains[0][0], to)
		}
	}
	return "", x.policy.allows("", to)
}

// proves returns an identity in the certificate that may reach another one.
func (p policy) proves(c *x509.Certificate, to string) (identity string, ok bool) {
	for _, r := range p {
		switch {
		case r.To != Any && r.To != to:
		case r.From == Any:
			ok = true // another rule may contain a specific identity
		case c.VerifyHostname(r.From) == nil:
			return r.From, true
		}
	}
	return "", ok
}
