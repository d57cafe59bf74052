package asterisque

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/wire"
)

// Peer describes the other side of a session.
type Peer struct {
	ID         string   // name given by the peer: proves nothing
	LocalAddr  net.Addr // of the Wire
	RemoteAddr net.Addr
	// of the Wire; nil if that is not encrypted by TLS; see Certificate
	TLS        *tls.ConnectionState
	Credential []byte // presented by the peer, for Access.Accept only; see Access.Credential
	// identity of the peer, granted by Access.Accept; empty on the side that dialled
	Subject string
}

// peerOf returns the description of the other side by the Wire.
func peerOf(w wire.Wire) Peer {
	p := Peer{LocalAddr: w.LocalAddr(), RemoteAddr: w.RemoteAddr()}
	if secure, ok := w.(wire.Secure); ok {
		state := secure.ConnectionState()
		p.TLS = &state
	}
	return p
}

// String returns the identity of the peer, for logs, without its credential and its TLS state.
func (p Peer) String() string {
	parts := []string{fmt.Sprintf("%q", p.ID)}
	if p.Subject != "" {
		parts = append(parts, fmt.Sprintf("subject %q", p.Subject))
	}
	return strings.Join(append(parts, fmt.Sprint("at ", p.RemoteAddr)), " ")
}

// GoString implements fmt.GoStringer.
func (p Peer) GoString() string { return "asterisque.Peer{" + p.String() + "}" }

// LogValue implements slog.LogValuer.
func (p Peer) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Certificate returns the certificate by which TLS has authenticated the peer, or nil if it has
// not.
func (p Peer) Certificate() *x509.Certificate {
	if p.TLS == nil || len(p.TLS.VerifiedChains) == 0 {
		return nil
	}
	return p.TLS.VerifiedChains[0][0]
}

// identity returns the identity proved by a verified TLS client certificate, or "".
func (p Peer) identity() string {
	if p.TLS == nil || len(p.TLS.VerifiedChains) == 0 {
		return ""
	}
	sum := sha256.Sum256(p.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// quotaName returns the name of the owner of sessions with p.
func (p *Peer) quotaName() quota.Name {
	return quota.NameOf(p.Subject, p.identity(), p.RemoteAddr)
}
