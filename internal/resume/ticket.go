// Package resume has the state by which sessions outlive their Wires: the [Ticket] that entitles a
// peer to resume its session, the [Pacer] that bounds the cost of resumes, and the suspended
// [Sessions] of a node, which are bounded for each owner and in all.
package resume

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// Ticket holds the secrets that entitle a peer to resume a session. It is safe for concurrent use.
type Ticket struct {
	session  [message.SessionSize]byte // these are fixed
	records  Records                   // nil on the side that connected
	identity string                    // proved by the peer, and the same over all Wires

	mu     sync.Mutex
	secret [message.SecretSize]byte // guarded by mu, as all below; entitles to the next resume
	// valid too, until the peer is known to have the latest one
	former formerSecrets
}

// Records stores the records of sessions. Errors are logged.
type Records interface {
	Put(ctx context.Context, r Record)
	Remove(session [message.SessionSize]byte)
}

// Record is the stored part of a ticket.
type Record struct {
	Session        [message.SessionSize]byte
	Secret, Former [sha256.Size]byte // hashes of the latest secret and of the one before, or zero
	Identity       string            // proved by the peer
	Expires        time.Time         // zero while the session has a Wire
}

// Init prepares e. records is nil on the side that connected, which stores nothing.
func (e *Ticket) Init(session [message.SessionSize]byte, secret [message.SecretSize]byte, identity string, records Records) {
	e.session, e.secret, e.identity, e.records = session, secret, identity, records
}

// ProvedBy reports whether the peer that began the session has proved this identity.
func (e *Ticket) ProvedBy(identity string) bool { return e.identity == identity }

// formerSecrets are the secrets of a peer that does not have the latest one: the secret that it has
// used, and the one that it was sent before, if the peer reconnected without it, or if two of its
// handshakes have overtaken each other. Zero secrets entitle to nothing.
type formerSecrets [2][message.SecretSize]byte

// Entitles reports whether secret entitles to the next resume.
func (e *Ticket) Entitles(secret [message.SecretSize]byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	ok := subtle.ConstantTimeCompare(secret[:], e.secret[:]) == 1
	for _, former := range e.former {
		ok = ok || former != [message.SecretSize]byte{} && subtle.ConstantTimeCompare(secret[:], former[:]) == 1
	}
	return ok
}

// Replace makes next the secret. The secret used by the peer stays valid until the peer is known to
// have next. So does the one sent before, as it is unknown with which of its handshakes the peer
// continues.
func (e *Ticket) Replace(used, next [message.SecretSize]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.former = formerSecrets{used}
	if used != e.secret {
		e.former[1] = e.secret
	}
	e.secret = next
}

// Settle is called when a frame has arrived over a Wire: its peer has the secret that it was sent.
func (e *Ticket) Settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.former = formerSecrets{}
}

// Latest returns the secret for the next resume.
func (e *Ticket) Latest() [message.SecretSize]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secret
}

// NewSecret returns a new random secret.
func NewSecret() (secret [message.SecretSize]byte) {
	rand.Read(secret[:]) // never fails
	return secret
}

// Store stores the entitlement to the next resume. expires is zero while there is a Wire.
func (e *Ticket) Store(ctx context.Context, expires time.Time) {
	if e.records == nil {
		return
	}
	r := Record{Session: e.session, Identity: e.identity, Expires: expires}
	r.Secret, r.Former = e.sums()
	e.records.Put(ctx, r)
}

// Forget removes the record of the session.
func (e *Ticket) Forget() {
	if e.records != nil {
		e.records.Remove(e.session)
	}
}

// sums returns the hashes of the secrets for a record.
func (e *Ticket) sums() (secret, former [sha256.Size]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	secret = sha256.Sum256(e.secret[:])
	if e.former != (formerSecrets{}) {
		former = sha256.Sum256(e.former[0][:])
	}
	return secret, former
}
