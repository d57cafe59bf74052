package callstore

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// Open opens the bucket, or creates it. It retries while the NATS servers have yet to find each
// other, until start ends.
func (d *Registry) Open(start context.Context, l Links) error {
	d.nc, d.js, d.ctx, d.log = l.NATS, l.JetStream, l.Life, l.Logger
	before := d.nc.LastError()
	return kv.Explain(d.nc, before, "opening the bucket "+d.cfg.Bucket, d.openFirst(start))
}

func (d *Registry) openFirst(start context.Context) error {
	bucket, err := d.awaitBucket(start)
	if err != nil {
		return err
	}
	d.bucket, err = newStore(d.nc, bucket)
	d.room = kv.NewRoom(d.plan.Calls, d.plan.Bytes, d.look)
	return err
}

func (d *Registry) awaitBucket(start context.Context) (bucket jetstream.KeyValue, err error) {
	err = kv.Retry(start, func(ctx context.Context) (err error) {
		bucket, err = d.openBucket(ctx, true)
		return err
	})
	return bucket, err
}

// openBucket opens the bucket, and creates it if it does not exist. A node that joins checks its
// limits.
func (d *Registry) openBucket(ctx context.Context, check bool) (jetstream.KeyValue, error) {
	want := d.stream()
	s, err := kv.OpenStream(ctx, d.js, want)
	if err == nil && check {
		err = d.checkStream(s.CachedInfo().Config, want)
	}
	if err != nil {
		return nil, err
	}
	return d.js.KeyValue(ctx, d.cfg.Bucket)
}

// stream returns the stream configuration of the bucket, as package jetstream makes one for a
// bucket, but with a limit of entries: entries beyond it are rejected, and no entry is dropped
// before its time.
func (d *Registry) stream() jetstream.StreamConfig {
	c := kv.BucketStream(d.cfg.Bucket, "durable calls of asterisque nodes", d.plan.Remember, kv.WithReserve(d.plan.Bytes))
	c.MaxMsgs = kv.WithReserve(d.plan.Calls)
	c.Storage, c.Replicas = d.cfg.Storage, d.cfg.Replicas
	c.Metadata = map[string]string{kv.ClusterKey: d.cfg.Cluster}
	return c
}

// checkStream returns an error if the stream of a bucket differs from the required configuration.
func (d *Registry) checkStream(have, want jetstream.StreamConfig) error {
	if have.Metadata[kv.ClusterKey] != want.Metadata[kv.ClusterKey] {
		return kv.OtherCluster(d.cfg.Bucket, have.Metadata[kv.ClusterKey], want.Metadata[kv.ClusterKey])
	}
	return kv.Differing(d.cfg.Bucket, append(kv.StreamLimits(want, have),
		kv.NewLimit("number of entries", want.MaxMsgs, have.MaxMsgs),
		kv.NewLimit("largest value", "-1", have.MaxMsgSize),
		kv.NewLimit("history", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject))...)
}

// look reads the state of the bucket from the leader of the stream, and creates the bucket again if
// it is gone.
func (d *Registry) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	if !d.nc.IsConnected() {
		return nil, nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	s, err := d.js.Stream(ctx, d.bucket.Stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		d.log.Warn("cluster: the bucket of the durable calls is gone, and with it what it remembered", "bucket", d.cfg.Bucket)
		if _, err = d.openBucket(ctx, false); err == nil {
			s, err = d.js.Stream(ctx, d.bucket.Stream())
		}
	}
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
