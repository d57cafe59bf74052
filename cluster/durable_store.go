package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// durableStore is the bucket of the durable calls. Each method is one request with the timeout
// natsPatience.
type durableStore struct { // fixed
	kv     jetstream.KeyValue
	js     nats.JetStreamContext
	stream string // of the bucket
	before string // subject prefix of the names in the stream
}

func newDurableStore(nc *nats.Conn, kv jetstream.KeyValue) (*durableStore, error) {
	js, err := nc.JetStream()
	if err != nil {
		return nil, err
	}
	return &durableStore{kv, js, "KV_" + kv.Bucket(), "$KV." + kv.Bucket() + "."}, nil
}

// read returns the entry of a call. It asks the leader of the stream, as claims do: a server that
// lags behind would show a call as new that has run.
func (s *durableStore) read(ctx context.Context, name string) (e durableEntry, err error) {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	m, err := s.js.GetLastMsg(s.stream, s.before+name, nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound):
		return e, nil
	case err != nil:
		return e, err
	}
	e.revision, e.written = m.Sequence, m.Time
	if m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != "" {
		return e, nil // it did not run
	}
	e.there = true
	e.record, e.unread = decodeDurable(m.Data)
	return e, nil
}

// write replaces the entry with the revision, 0 for none, by a record, and returns the new
// revision.
func (s *durableStore) write(ctx context.Context, name string, r *durableRecord, revision uint64) (uint64, error) {
	value, err := r.encode()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	return s.kv.Update(ctx, name, append(value, r.padding(revision)...), revision)
}

// remove deletes the entry with the revision.
func (s *durableStore) remove(ctx context.Context, name string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	return s.kv.Delete(ctx, name, jetstream.LastRevision(revision))
}

// fullCodes are the error codes of JetStream for writes beyond a limit of the stream, of the memory
// and the disks of its servers, or of the account.
var fullCodes = []jetstream.ErrorCode{10077, 10002, 10023, 10028, 10047}

// isFull reports whether a write failed for lack of room.
func isFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(fullCodes, api.ErrorCode)
}

// isUnfit reports whether a write failed for lack of room, or because it exceeds the maximum
// message size.
func isUnfit(err error) bool { return isFull(err) || errors.Is(err, nats.ErrMaxPayload) }

// isRejected reports whether a write certainly failed.
func isRejected(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload)
}
