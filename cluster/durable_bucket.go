package cluster

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// beginDurable begins to record durable calls, if configured.
func (c *Cluster) beginDurable(start context.Context) error {
	if c.durable == nil {
		return nil
	}
	before := c.nc.LastError()
	err := c.durable.begin(start, c)
	return explain(c.nc, before, "opening the bucket "+c.durable.bucket, err)
}

// begin opens the bucket, or creates it. It retries while the NATS servers have yet to find each
// other.
func (d *durableRegistry) begin(start context.Context, c *Cluster) error {
	d.nc, d.js, d.ctx, d.log = c.nc, c.buckets.js, c.ctx, c.node.Logger()
	bucket, err := d.awaitBucket(start)
	if err != nil {
		return err
	}
	d.store, err = newDurableStore(c.nc, bucket)
	d.room = kv.NewRoom(d.plan.Calls, d.plan.Bytes, d.look)
	return err
}

func (d *durableRegistry) awaitBucket(start context.Context) (bucket jetstream.KeyValue, err error) {
	err = kv.Retry(start, func(ctx context.Context) (err error) {
		bucket, err = d.open(ctx, true)
		return err
	})
	return bucket, err
}

// open opens the bucket, and creates it if it does not exist. A node that joins checks its limits.
func (d *durableRegistry) open(ctx context.Context, check bool) (jetstream.KeyValue, error) {
	want := d.stream()
	s, err := kv.OpenStream(ctx, d.js, want)
	if err == nil && check {
		err = d.checkStream(s.CachedInfo().Config, want)
	}
	if err != nil {
		return nil, err
	}
	return d.js.KeyValue(ctx, d.bucket)
}

// stream returns the stream configuration of the bucket, as package jetstream makes one for a
// bucket, but with a limit of entries: entries beyond it are rejected, and no entry is dropped
// before its time.
func (d *durableRegistry) stream() jetstream.StreamConfig {
	c := kv.BucketStream(d.bucket, "durable calls of asterisque nodes", d.plan.Remember, kv.WithReserve(d.plan.Bytes))
	c.MaxMsgs = kv.WithReserve(d.plan.Calls)
	c.Replicas = d.replicas
	c.Metadata = map[string]string{kv.ClusterKey: d.mark}
	if d.plan.InMemory {
		c.Storage = jetstream.MemoryStorage
	}
	return c
}

// checkStream returns an error if the stream of a bucket differs from the required configuration.
func (d *durableRegistry) checkStream(have, want jetstream.StreamConfig) error {
	if have.Metadata[kv.ClusterKey] != want.Metadata[kv.ClusterKey] {
		return kv.OtherCluster(d.bucket, have.Metadata[kv.ClusterKey], want.Metadata[kv.ClusterKey])
	}
	return kv.Differing(d.bucket, append(kv.StreamLimits(want, have),
		kv.NewLimit("number of entries", want.MaxMsgs, have.MaxMsgs),
		kv.NewLimit("largest value", "-1", have.MaxMsgSize),
		kv.NewLimit("history", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject),
		kv.NewLimit("storage", want.Storage, have.Storage))...)
}
