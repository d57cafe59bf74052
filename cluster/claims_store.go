package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
)

// owner is a node, as others know it, in one life of it.
type owner struct {
	name     string // empty: it cannot be called
	node     string // its id
	instance string // differs for each start of the node
}

// claimEntry is what the bucket has of a key.
type claimEntry struct {
	revision uint64 // of the last message, a mark of deletion included; 0: there is none
	held     bool   // the rest says by whom
	by       owner
	epoch    uint64
}

// is reports whether the entry is that of the claim of o with that epoch.
func (e claimEntry) is(o owner, epoch uint64) bool { return e.held && e.by == o && e.epoch == epoch }

// isBefore reports whether the entry is one of before the claim with that epoch: then a leader of
// the stream has given it that is none any more.
func (e claimEntry) isBefore(epoch uint64) bool { return e.held && e.epoch < epoch }

// claimValue is how a claimEntry stands in the bucket.
type claimValue struct {
	Name     string `json:"name,omitempty"`
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Epoch    uint64 `json:"epoch"`
}

// natsPatience bounds each request to NATS. What is lost with a server is never answered, so that
// asking again is better than to wait for long.
const natsPatience = 2 * time.Second

// claimStore is the bucket of the claims. Each method is a request, and bounded by natsPatience.
type claimStore struct { // fixed
	kv     jetstream.KeyValue
	js     nats.JetStreamContext
	stream string // below the bucket
	before string // what stands before the keys in the subjects of the stream
}

func newClaimStore(nc *nats.Conn, kv jetstream.KeyValue) (*claimStore, error) {
	js, err := nc.JetStream()
	if err != nil {
		return nil, err
	}
	return &claimStore{kv, js, "KV_" + kv.Bucket(), "$KV." + kv.Bucket() + "."}, nil
}

// read returns what the bucket has of a key. It asks the leader of the stream: Get of the bucket
// may ask any of its servers, and one that lags behind would give an old holder, or none, as the
// present one. And it sees marks of deletion, whose revision Get keeps for itself.
func (s *claimStore) read(ctx context.Context, key string) (e claimEntry, err error) {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	m, err := s.js.GetLastMsg(s.stream, s.before+key, nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound):
		return e, nil
	case err != nil:
		return e, err
	}
	e.revision = m.Sequence
	if m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != "" {
		return e, nil // deleted, purged or run out
	}
	var v claimValue
	if json.Unmarshal(m.Data, &v) != nil {
		v = claimValue{} // somebody else's, which only a takeover replaces
	}
	e.held, e.by, e.epoch = true, owner{v.Name, v.Node, v.Instance}, v.Epoch
	return e, nil
}

// claimPosition is where the stream of the bucket is.
type claimPosition struct {
	created time.Time
	last    uint64 // the sequence of the last message, 0 before the first
}

// position asks the leader of the stream where it is. It fails unless entries run out after ttl.
func (s *claimStore) position(ctx context.Context, ttl time.Duration) (p claimPosition, err error) {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	info, err := s.js.StreamInfo(s.stream, nats.Context(ctx))
	if err != nil {
		return p, err
	}
	if info.Config.MaxAge != ttl {
		return p, asterisque.ErrUnavailable.Withf("entries of the bucket %s run out after %v, not after %v as claims need: set its TTL", s.kv.Bucket(), info.Config.MaxAge, ttl)
	}
	return claimPosition{info.Created, info.State.LastSeq}, nil
}

// epoch returns the epoch of a claim that is written after p was seen.
//
// Epochs of a key strictly increase. Within one bucket: whoever takes a key has read its entry of
// revision r, then the position, then writes only if the entry is still r (compare and swap). The
// writes of the holders before have revisions up to r, and their epochs were not beyond these, as
// the write comes after the position. p.last is at least r, and one more is beyond all of them.
// Where there is no entry at all to compare with, that of a whole claim, made and gone again, could
// lie between position and write. But it, or its mark of deletion, stays for ttl, and what took
// longer than a lease, which is less, is no claim: see [claims.attempt].
//
// Across buckets: a bucket has had fewer messages than nanoseconds since it was made, so its epochs
// are below the time, as nanoseconds, at which they were given, and those of one that is made later
// are above it. The clocks of NATS servers have to agree to the time it takes to make a bucket
// anew. The sum fits in 64 bits until the year 2554.
func (p claimPosition) epoch() uint64 { return uint64(p.created.UnixNano()) + p.last + 1 }

// write puts an entry in the place of that with the revision, 0 for none, and returns its own.
func (s *claimStore) write(ctx context.Context, key string, by owner, epoch, revision uint64) (uint64, error) {
	value, err := json.Marshal(claimValue{by.name, by.node, by.instance, epoch})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	// not Create, which replaces a mark of deletion whatever its revision
	return s.kv.Update(ctx, key, value, revision)
}

// remove deletes the entry with the revision.
func (s *claimStore) remove(ctx context.Context, key string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	return s.kv.Delete(ctx, key, jetstream.LastRevision(revision))
}

// isConflict reports whether a write failed because the entry has another revision.
func isConflict(err error) bool { return errors.Is(err, jetstream.ErrKeyRevisionMismatch) }

// unanswered says what to make of an error of NATS. An Abort says so itself.
func unanswered(what, key string, err error) error {
	var a *asterisque.Abort
	if errors.As(err, &a) {
		return a
	}
	return fmt.Errorf("cluster: %s %q: NATS does not answer as it should, try again: %w", what, key, err)
}
