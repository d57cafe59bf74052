package kv

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Store is a bucket whose entries are read from the leader of its stream. Get of a bucket may
// ask any server, and a server that lags behind would return an old entry, or none. Each method is
// one request with the timeout RequestTimeout.
type Store struct { // fixed
	kv     jetstream.KeyValue
	js     nats.JetStreamContext
	name   string // of the bucket
	before string // subject prefix of the keys in the stream
}

// Entry is the last message of a key.
type Entry struct {
	Revision uint64    // of the last message, a deletion marker included; 0: none
	Exists   bool      // it is neither deleted, nor purged, nor expired
	Written  time.Time // by the clock of JetStream
	Value    []byte
}

// NewStore returns the store of a bucket.
func NewStore(nc *nats.Conn, kv jetstream.KeyValue) (*Store, error) {
	js, err := nc.JetStream()
	if err != nil {
		return nil, err
	}
	return &Store{kv, js, "KV_" + kv.Bucket(), "$KV." + kv.Bucket() + "."}, nil
}

// Bucket returns the bucket, for watches.
func (s *Store) Bucket() jetstream.KeyValue { return s.kv }

// Stream returns the name of the stream of the bucket.
func (s *Store) Stream() string { return s.name }

// Read returns the entry of a key.
func (s *Store) Read(ctx context.Context, key string) (e Entry, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	m, err := s.js.GetLastMsg(s.name, s.before+key, nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrMsgNotFound):
		return e, nil
	case err != nil:
		return e, err
	}
	deleted := m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != ""
	return Entry{Revision: m.Sequence, Exists: !deleted, Written: m.Time, Value: m.Data}, nil
}

// Info returns the configuration and the state of the stream, from its leader.
func (s *Store) Info(ctx context.Context) (*nats.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return s.js.StreamInfo(s.name, nats.Context(ctx))
}

// Write replaces the entry with the revision, 0 for none, and returns the new revision.
func (s *Store) Write(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	// not Create, which replaces a deletion marker of any revision
	return s.kv.Update(ctx, key, value, revision)
}

// Remove deletes the entry with the revision.
func (s *Store) Remove(ctx context.Context, key string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return s.kv.Delete(ctx, key, jetstream.LastRevision(revision))
}

// VersionOf returns the version in a line of JSON, or 0.
func VersionOf(head []byte) int {
	var version struct {
		V int `json:"v"`
	}
	if json.Unmarshal(head, &version) != nil {
		return 0
	}
	return version.V
}
