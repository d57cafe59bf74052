package cluster

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// durableStore is the bucket of the durable calls. Each method is one request.
type durableStore struct{ *kv.Store } // fixed

func newDurableStore(nc *nats.Conn, bucket jetstream.KeyValue) (*durableStore, error) {
	s, err := kv.NewStore(nc, bucket)
	if err != nil {
		return nil, err
	}
	return &durableStore{s}, nil
}

// read returns the entry of a call, from the leader of the stream: a server that lags behind would
// show a call as new that has run.
func (s *durableStore) read(ctx context.Context, name string) (e durableEntry, err error) {
	m, err := s.Store.Read(ctx, name)
	if err != nil || !m.Exists {
		return durableEntry{revision: m.Revision, written: m.Written}, err // a deleted call did not run
	}
	e = durableEntry{revision: m.Revision, written: m.Written, there: true}
	e.record, e.unread = decodeDurable(m.Value)
	return e, nil
}

// write replaces the entry with the revision, 0 for none, by a record, and returns the new
// revision.
func (s *durableStore) write(ctx context.Context, name string, r *durableRecord, revision uint64) (uint64, error) {
	value, err := r.encode()
	if err != nil {
		return 0, err
	}
	return s.Store.Write(ctx, name, append(value, r.padding(revision)...), revision)
}
