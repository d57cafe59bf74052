package kv

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ClusterKey is the metadata key of a bucket for the name of its cluster.
const ClusterKey = "asterisque.cluster"

// IsToken reports whether s can be the name or the id of a node, which is a part of subjects and
// keys: it has 1 to 64 letters, digits, '-' and '_'.
func IsToken(s string) bool { return token.MatchString(s) }

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// BucketName returns the name of a bucket or a stream of a cluster with a prefix.
func BucketName(prefix, what string) string { return "asterisque_" + prefix + "_" + what }

// Open opens a bucket, and creates it if it does not exist. Opening first spares most nodes
// the permission to create one.
func Open(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, want)
		if errors.Is(err, jetstream.ErrBucketExists) { // created meanwhile, with other limits
			kv, err = js.KeyValue(ctx, want.Bucket)
		}
	}
	if err != nil {
		return nil, err
	}
	return kv, nil
}

// Check returns an error if a bucket differs from want: [ErrOtherCluster], a [*LimitError], or an
// error of NATS.
func Check(ctx context.Context, kv jetstream.KeyValue, want jetstream.KeyValueConfig) error {
	s, err := kv.Status(ctx)
	if err != nil {
		return err
	}
	have := s.Config()
	if other := have.Metadata[ClusterKey]; other != want.Metadata[ClusterKey] {
		return OtherCluster(want.Bucket, other, want.Metadata[ClusterKey])
	}
	return Differing(want.Bucket,
		NewLimit("time to live", want.TTL, s.TTL()),
		NewLimit("history", 1, s.History()),
		NewLimit("number of replicas", want.Replicas, have.Replicas),
		leastValue(want.MaxValueSize, have.MaxValueSize),
		NewLimit("storage", want.Storage, have.Storage))
}

// BucketStream returns the stream configuration of a bucket that rejects writes beyond most bytes,
// as package jetstream makes one for a bucket that drops old entries instead. Each entry expires
// after life.
func BucketStream(bucket, description string, life time.Duration, most int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              "KV_" + bucket,
		Description:       description,
		Subjects:          []string{"$KV." + bucket + ".>"},
		MaxMsgsPerSubject: 1,
		MaxBytes:          most,
		MaxAge:            life,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Discard:           jetstream.DiscardNew,
		Duplicates:        min(life, 2*time.Minute),
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       true,
	}
}

// WithReserve returns a limit of the bucket that leaves room for the outcomes of all calls admitted
// up to the configured limit.
func WithReserve(limit int64) int64 { return limit + limit/4 + 16 }

// Opener is OpenStream, or FindStream.
type Opener func(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error)

// FindStream opens a stream. The error is jetstream.ErrStreamNotFound if it does not exist.
func FindStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	return js.Stream(ctx, want.Name)
}

// OpenStream opens a stream, and creates it if it does not exist.
func OpenStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node has created it
			s, err = js.Stream(ctx, want.Name)
		}
	}
	return s, err
}
