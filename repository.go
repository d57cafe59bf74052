package asterisque

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"
)

// Repository holds a record of every session that its peer may resume; see [WithResume]. The
// session itself, with what it holds, stays in the memory of the node that began it. So a
// Repository which several nodes share can tell any of them which one to send the peer to, but not
// move a session. Without a record a session cannot be resumed. Who may is up to the session: a
// record may be older than that.
//
// Methods are called concurrently, each call on a goroutine of its own, at most 1,024 at once for a
// node. Nobody waits for one beyond the end of its context, which is no later than the time of
// [Timeouts].Handshake; so a method may block, and call the node. Those that fail, or panic, cost
// the peer its resume, and nothing else; with Resume.Elsewhere a Get that fails costs it no more
// than another attempt. The context of a Put ends with its session, and that of the first one with
// the handshake; Delete may come before that is called, and it stores nothing then. Node.Close
// waits for Delete, and so Delete had better not call it.
type Repository interface {
	// Put stores r, in place of any earlier record of the same session: before the peer knows of
	// the session, when it goes away (Expires is set then) and when it is resumed.
	Put(ctx context.Context, r SessionRecord) error

	// Get returns the record of a session. ok is false if there is none, or if it has expired.
	Get(ctx context.Context, session SessionID) (r SessionRecord, ok bool, err error)

	// Delete removes the record of a session that has ended. It is no error if there is none.
	Delete(ctx context.Context, session SessionID) error
}

// SessionRecord is what a [Repository] stores of a session. All of it can be written as JSON.
type SessionRecord struct {
	Session SessionID `json:"session"` // its id
	// SHA-256 of the secret that entitles to resume it, which is another one after each resume
	Secret [32]byte `json:"secret"`
	// the same of the one before, as long as the peer may not have got the next; zero without
	Former [32]byte `json:"former"`
	// of the peer, if a TLS client certificate proved one: SHA-256 of the certificate's public key,
	// in hexadecimal
	Identity string `json:"identity"`
	Node     string `json:"node"` // id of the node that holds the session; see WithID
	// until when it waits for its peer; zero while it has a Wire
	Expires time.Time `json:"expires"`
}

// NewRepository returns a Repository in memory, which is what every node has by default. Expired
// records are removed as others are stored.
func NewRepository() Repository { return &memoryRepository{records: make(map[SessionID]SessionRecord)} }

type memoryRepository struct {
	mu      sync.Mutex
	records map[SessionID]SessionRecord // guarded by mu
	swept   time.Time                   // guarded by mu
}

// sweepEvery is how often expired records are looked for, at most.
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

// records are those of a node's sessions, in its Repository. Failures of that are logged.
type records struct {
	node       string // that is in the records; these are fixed
	repository Repository
	calls      question      // how that is called
	patience   time.Duration // for how long it is waited for, at most
	log        *slog.Logger
}

// put stores r, as that of this node.
func (rs *records) put(ctx context.Context, r SessionRecord) {
	r.Node = rs.node
	_, err := consult(ctx, rs, func(ctx context.Context) (any, error) { return nil, rs.repository.Put(ctx, r) })
	rs.logError(err, r.Session)
}

// get returns the record of a session.
func (rs *records) get(ctx context.Context, session [16]byte) (_ SessionRecord, ok bool, err error) {
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

// remove deletes the record of a session.
func (rs *records) remove(session [16]byte) {
	_, err := consult(context.Background(), rs, func(ctx context.Context) (any, error) {
		return nil, rs.repository.Delete(ctx, session)
	})
	rs.logError(err, session)
}

func (rs *records) logError(err error, session [16]byte) {
	if err != nil {
		rs.log.Warn("repository failed", "session", hex.EncodeToString(session[:4]), "error", err)
	}
}

// consult calls f, which calls the repository, and waits for that no longer than its patience, and
// than three quarters of the time of ctx: a handshake can go on without an answer. What a node has
// by itself, which is memory, is called at once.
func consult[T any](ctx context.Context, rs *records, f func(context.Context) (T, error)) (T, error) {
	if _, own := rs.repository.(*memoryRepository); own {
		return f(ctx)
	}
	most := rs.patience
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)*3/4)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return ask(ctx, &rs.calls, func() (T, error) { return f(ctx) }, nil)
}
