package exchange

import (
	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/relayproto"
)

// prove returns the identity that a node has proved, or an ErrUnproved if it claims another one.
// Without a claim the identity is the granted Subject, or the node's name, if its certificate is
// valid for it, or else empty.
func prove(p asterisque.Peer, m *relayproto.Member) (string, error) {
	if len(p.Subject) > mostIdentity || !isText(p.Subject) {
		return "", relayproto.ErrUnproved.Withf("the granted Subject is no identity, which has up to %d bytes, all printable: %.80q", mostIdentity, p.Subject)
	}
	if p.Subject != "" {
		if m.Identity != "" && m.Identity != p.Subject {
			return "", relayproto.ErrUnproved.Withf("the node claims to be %q, and has proved to be %q", m.Identity, p.Subject)
		}
		return p.Subject, nil
	}
	claim := defaulted(m.Identity, m.Name)
	if c := p.Certificate(); claim != "" && c != nil && c.VerifyHostname(claim) == nil {
		return claim, nil
	}
	if m.Identity != "" {
		return "", relayproto.ErrUnproved.Withf("the node claims to be %q: its certificate does not prove that, and nothing else was granted", m.Identity)
	}
	return "", nil
}
