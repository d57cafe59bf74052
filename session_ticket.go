package asterisque

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// resumeTicket holds the secrets that entitle a peer to resume a session.
type resumeTicket struct {
	session  SessionID          // these are fixed
	records  *repositoryRecords // nil on the side that connected
	identity string             // proved by the peer, and the same over all Wires

	mu     sync.Mutex
	secret [message.SecretSize]byte // guarded by mu, as all below; entitles to the next resume
	// valid too, until the peer is known to have the latest one
	former formerSecrets
}

// formerSecrets are the secrets of a peer that does not have the latest one: the secret that it has
// used, and the one that it was sent before, if the peer reconnected without it, or if two of its
// handshakes have overtaken each other. Zero secrets entitle to nothing.
type formerSecrets [2][message.SecretSize]byte

// entitles reports whether secret entitles to the next resume.
func (e *resumeTicket) entitles(secret [message.SecretSize]byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	ok := subtle.ConstantTimeCompare(secret[:], e.secret[:]) == 1
	for _, former := range e.former {
		ok = ok || former != [message.SecretSize]byte{} && subtle.ConstantTimeCompare(secret[:], former[:]) == 1
	}
	return ok
}

// replace makes next the secret. The secret used by the peer stays valid until the peer is known to
// have next. So does the one sent before, as it is unknown with which of its handshakes the peer
// continues.
func (e *resumeTicket) replace(used, next [message.SecretSize]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.former = formerSecrets{used}
	if used != e.secret {
		e.former[1] = e.secret
	}
	e.secret = next
}

// settle is called when a frame has arrived over a Wire: its peer has the secret that it was sent.
func (e *resumeTicket) settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.former = formerSecrets{}
}

// latest returns the secret for the next resume.
func (e *resumeTicket) latest() [message.SecretSize]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secret
}

// newSecret returns a new random secret.
func newSecret() (secret [message.SecretSize]byte) {
	rand.Read(secret[:]) // never fails
	return secret
}

// record stores the entitlement to the next resume. expires is zero while there is a Wire.
func (e *resumeTicket) record(ctx context.Context, expires time.Time) {
	if e.records == nil {
		return
	}
	r := SessionRecord{Session: e.session, Identity: e.identity, Expires: expires}
	r.Secret, r.Former = e.sums()
	e.records.put(ctx, r)
}

// forget removes the record of the session.
func (e *resumeTicket) forget() {
	if e.records != nil {
		e.records.remove(e.session)
	}
}

// sums returns the hashes of the secrets for a record.
func (e *resumeTicket) sums() (secret, former [sha256.Size]byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	secret = sha256.Sum256(e.secret[:])
	if e.former != (formerSecrets{}) {
		former = sha256.Sum256(e.former[0][:])
	}
	return secret, former
}
