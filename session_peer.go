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
)

// Peer is what is known of the other side of a session.
type Peer struct {
	ID         string   // as it calls itself: proves nothing
	LocalAddr  net.Addr // of the Wire
	RemoteAddr net.Addr
	// of the Wire; nil if that is not encrypted by TLS; see Certificate
	TLS        *tls.ConnectionState
	Credential []byte // what the peer showed, for Access.Accept only; see Access.Credential
	// who the peer is, as Access.Accept found out; empty on the side that dialled
	Subject string
}

// String says who the peer is, for logs: without its credential, and what TLS knows.
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

// Certificate returns the certificate by which TLS has proved who the peer is, or nil if it has
// not.
func (p Peer) Certificate() *x509.Certificate {
	if p.TLS == nil || len(p.TLS.VerifiedChains) == 0 {
		return nil
	}
	return p.TLS.VerifiedChains[0][0]
}

// identity returns what a verified TLS client certificate proves, or nothing.
func (p Peer) identity() string {
	if p.TLS == nil || len(p.TLS.VerifiedChains) == 0 {
		return ""
	}
	sum := sha256.Sum256(p.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}
