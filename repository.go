package asterisque

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/resume"
)

// Repository stores a record of every session that its peer may resume; see [WithResume]. The
// session itself, with its state, stays in the memory of the node that began it. A Repository that
// several nodes share can therefore name the node that has a session, but cannot move the session.
// A session without a record cannot be resumed. The session itself checks the secret: a record may
// be outdated.
//
// Methods are called concurrently, each call on its own goroutine, at most 1,024 at once for a
// node. A call is not awaited beyond the end of its context, which is at most Handshake of
// [Timeouts]; so a method may block, and call the node. A method that fails, or panics, costs the
// peer only its resume; with Resume.Elsewhere a Get that fails costs only another attempt. The
// context of a Put ends with its session, and the context of the first Put with the handshake.
// Delete may be called before such a Put is; the Put then stores nothing. Node.Close waits for
// Delete, so Delete must not call it.
type Repository interface {
	// Put stores r, in place of any earlier record of the same session. It is called before the
	// peer knows the session, when the session is suspended (Expires is set then), and when the
	// session is resumed.
	Put(ctx context.Context, r SessionRecord) error

	// Get returns the record of a session. ok is false if there is none, or if it has expired.
	Get(ctx context.Context, session SessionID) (r SessionRecord, ok bool, err error)

	// Delete removes the record of a session that has ended. A missing record is not an error.
	Delete(ctx context.Context, session SessionID) error
}

// SessionRecord is the record of a session in a [Repository]. It can be encoded as JSON.
type SessionRecord struct {
	Session SessionID `json:"session"` // id of the session
	// SHA-256 of the secret that entitles to resume; a resume replaces the secret
	Secret [32]byte `json:"secret"`
	// the same of the previous secret, until the peer is known to have the next; otherwise zero
	Former [32]byte `json:"former"`
	// SHA-256 of the public key of the peer's TLS client certificate, in hexadecimal; empty without
	// one
	Identity string `json:"identity"`
	Node     string `json:"node"` // id of the node that holds the session; see WithID
	// time until which a suspended session waits for its peer; zero while it has a Wire
	Expires time.Time `json:"expires"`
}

// NewRepository returns a Repository in memory, the default of every node. Storing records removes
// expired ones.
func NewRepository() Repository { return &memoryRepository{records: make(map[SessionID]SessionRecord)} }

type memoryRepository struct {
	mu      sync.Mutex
	records map[SessionID]SessionRecord // guarded by mu
	swept   time.Time                   // guarded by mu
}

// sweepEvery is the minimum interval between searches for expired records.
const sweepEvery = 10 * time.Second

func (m *memoryRepository) Put(_ context.Context, r SessionRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[r.Session] = r
	if now := time.Now(); now.Sub(m.swept) >= sweepEvery {
		m.swept = now
		for id, r := range m.records {
			if r.expired(now) {
				delete(m.records, id)
			}
		}
	}
	return nil
}

func (m *memoryRepository) Get(_ context.Context, session SessionID) (SessionRecord, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[session]
	if !ok || r.expired(time.Now()) {
		return SessionRecord{}, false, nil
	}
	return r, true, nil
}

func (m *memoryRepository) Delete(_ context.Context, session SessionID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, session)
	return nil
}

func (r *SessionRecord) expired(now time.Time) bool {
	return !r.Expires.IsZero() && !now.Before(r.Expires)
}

// repositoryRecords accesses the records of a node's sessions in its Repository, and logs failures.
type repositoryRecords struct {
	node       string // id of the node, for the records; these are fixed
	repository Repository
	queries    callback.Query // calls of the repository
	patience   time.Duration  // bounds each call
	log        *slog.Logger
}

// Put implements resume.Records.
func (rs *repositoryRecords) Put(ctx context.Context, stored resume.Record) {
	r := SessionRecord{
		Session: stored.Session, Secret: stored.Secret, Former: stored.Former, Identity: stored.Identity,
		Node: rs.node, Expires: stored.Expires,
	}
	_, err := consult(ctx, rs, func(ctx context.Context) (any, error) { return nil, rs.repository.Put(ctx, r) })
	rs.logError(err, r.Session)
}

// get returns the record of a session.
func (rs *repositoryRecords) get(ctx context.Context, session [16]byte) (_ SessionRecord, ok bool, err error) {
	type found struct {
		SessionRecord
		ok bool
	}
	f, err := consult(ctx, rs, func(ctx context.Context) (f found, err error) {
		f.SessionRecord, f.ok, err = rs.repository.Get(ctx, session)
		return f, err
	})
	rs.logError(err, session)
	return f.SessionRecord, f.ok, err
}

// Remove implements resume.Records: it deletes the record of a session.
func (rs *repositoryRecords) Remove(session [16]byte) {
	_, err := consult(context.Background(), rs, func(ctx context.Context) (any, error) {
		return nil, rs.repository.Delete(ctx, session)
	})
	rs.logError(err, session)
}

func (rs *repositoryRecords) logError(err error, session [16]byte) {
	if err != nil {
		rs.log.Warn("repository failed", "session", hex.EncodeToString(session[:4]), "error", err)
	}
}

// consult calls f, which calls the repository, and waits at most for patience, and at most for
// three quarters of the time of ctx: a handshake can continue without an answer. The default
// Repository, in memory, is called at once.
func consult[T any](ctx context.Context, rs *repositoryRecords, f func(context.Context) (T, error)) (T, error) {
	if _, own := rs.repository.(*memoryRepository); own {
		return f(ctx)
	}
	most := rs.patience
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)*3/4)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return callback.Ask(ctx, &rs.queries, func() (T, error) { return f(ctx) }, nil)
}
