package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// owner is a node, as seen by other nodes, in one run of it.
type owner struct {
	name     string // empty: the node cannot be called
	node     string // its id
	instance string // differs for each start of the node
}

// entry is the entry of a key in the bucket.
type entry struct {
	revision uint64 // of the last message, a deletion marker included; 0: none
	held     bool   // a node holds the key; the fields below describe its claim
	by       owner
	epoch    uint64
}

// is reports whether the entry belongs to the claim of o with that epoch.
func (e entry) is(o owner, epoch uint64) bool {
	return e.held && e.by == o && e.epoch == epoch
}

// isBefore reports whether the entry is older than the claim with that epoch: then a deposed leader
// of the stream has returned it.
func (e entry) isBefore(epoch uint64) bool { return e.held && e.epoch < epoch }

// entryValue is the JSON form of a entry.
type entryValue struct {
	Name     string `json:"name,omitempty"`
	Node     string `json:"node"`
	Instance string `json:"instance"`
	Epoch    uint64 `json:"epoch"`
}

// store is the bucket of the claims. Each method is one request.
type store struct{ bucket *kv.Store } // fixed

func newStore(nc *nats.Conn, bucket jetstream.KeyValue) (*store, error) {
	s, err := kv.NewStore(nc, bucket)
	if err != nil {
		return nil, err
	}
	return &store{s}, nil
}

// read returns the entry of a key, from the leader of the stream: a server that lags behind would
// return an old holder, or none. It also returns the revisions of deletion markers.
func (s *store) read(ctx context.Context, key string) (e entry, err error) {
	m, err := s.bucket.Read(ctx, key)
	if err != nil || !m.Exists {
		return entry{revision: m.Revision}, err
	}
	var v entryValue
	if json.Unmarshal(m.Value, &v) != nil {
		v = entryValue{} // not an entry of this package: only a takeover replaces it
	}
	return entry{m.Revision, true, owner{v.Name, v.Node, v.Instance}, v.Epoch}, nil
}

// position is the position of the bucket's stream.
type position struct {
	created time.Time
	last    uint64 // sequence number of the last message; 0 before the first
}

// position asks the leader of the stream for its position. It fails unless entries expire after
// ttl.
func (s *store) position(ctx context.Context, ttl time.Duration) (p position, err error) {
	info, err := s.bucket.Info(ctx)
	if err != nil {
		return p, err
	}
	if info.Config.MaxAge != ttl {
		return p, asterisque.ErrUnavailable.Withf("entries of the bucket %s run out after %v, not after %v as claims need: set its TTL", s.bucket.Bucket().Bucket(), info.Config.MaxAge, ttl)
	}
	return position{info.Created, info.State.LastSeq}, nil
}

// epoch returns the epoch of a claim that is written after p was read.
//
// Epochs of a key strictly increase. Within one bucket: a node that claims a key has read its entry
// of revision r, then the position, and then writes only if the revision is still r (compare and
// swap). The writes of earlier holders have revisions up to r, and their epochs do not exceed
// these, as a write follows its position. p.last is at least r, so p.last + 1 exceeds all of them.
// Without an entry, there is no revision to compare with: a whole claim could begin and end between
// position and write. But that claim, or its deletion marker, stays for TTL, and an attempt that
// takes longer than a lease, which is less, is no claim: see [Claims.attempt].
//
// Across buckets: a bucket has had fewer messages than nanoseconds since its creation. So its
// epochs are below the nanosecond time at which they were given, and the epochs of a bucket created
// later are above it. The clocks of the NATS servers have to agree within the time it takes to
// create a bucket again. The sum fits in 64 bits until the year 2554.
func (p position) epoch() uint64 { return uint64(p.created.UnixNano()) + p.last + 1 }

// write replaces the entry with the revision, 0 for none, and returns the new revision.
func (s *store) write(ctx context.Context, key string, by owner, epoch, revision uint64) (uint64, error) {
	value, err := json.Marshal(entryValue{by.name, by.node, by.instance, epoch})
	if err != nil {
		return 0, err
	}
	return s.bucket.Write(ctx, key, value, revision)
}

// remove deletes the entry with the revision.
func (s *store) remove(ctx context.Context, key string, revision uint64) error {
	return s.bucket.Remove(ctx, key, revision)
}

// unanswered wraps an error of NATS. It returns an Abort as it is.
func unanswered(what, key string, err error) error {
	var a *asterisque.Abort
	if errors.As(err, &a) {
		return a
	}
	return fmt.Errorf("cluster: %s %q: NATS does not answer as it should, try again: %w", what, key, err)
}
