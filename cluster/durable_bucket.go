package cluster

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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
	kv, err := d.awaitBucket(start)
	if err != nil {
		return err
	}
	d.store, err = newDurableStore(c.nc, kv)
	d.room = &durableRoom{calls: d.plan.Calls, bytes: d.plan.Bytes, look: d.look}
	return err
}

func (d *durableRegistry) awaitBucket(start context.Context) (kv jetstream.KeyValue, err error) {
	err = insist(start, func(ctx context.Context) (err error) {
		kv, err = d.open(ctx, true)
		return err
	})
	return kv, err
}

// open opens the bucket, and creates it if it does not exist. A node that joins checks its limits.
func (d *durableRegistry) open(ctx context.Context, check bool) (jetstream.KeyValue, error) {
	want := d.stream()
	s, err := openStream(ctx, d.js, want)
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
	c := bucketStream(d.bucket, "durable calls of asterisque nodes", d.plan.Remember, withReserve(d.plan.Bytes))
	c.MaxMsgs = withReserve(d.plan.Calls)
	c.Replicas = d.replicas
	c.Metadata = map[string]string{clusterKey: d.mark}
	if d.plan.InMemory {
		c.Storage = jetstream.MemoryStorage
	}
	return c
}

// bucketStream returns the stream configuration of a bucket that rejects writes beyond its limits.
func bucketStream(bucket, description string, life time.Duration, most int64) jetstream.StreamConfig {
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

// withReserve returns a limit of the bucket that leaves room for the outcomes of all calls admitted
// up to the configured limit.
func withReserve(limit int64) int64 { return limit + limit/4 + 16 }

// checkStream returns an error if the stream of a bucket differs from the required configuration.
func (d *durableRegistry) checkStream(have, want jetstream.StreamConfig) error {
	if have.Metadata[clusterKey] != want.Metadata[clusterKey] {
		return otherCluster(d.bucket, have.Metadata[clusterKey], want.Metadata[clusterKey])
	}
	return differing(d.bucket, append(limitsOf(want, have),
		checkedLimit{"number of entries", number(want.MaxMsgs), number(have.MaxMsgs)},
		checkedLimit{"largest value", "-1", number(have.MaxMsgSize)},
		checkedLimit{"history", number(want.MaxMsgsPerSubject), number(have.MaxMsgsPerSubject)},
		checkedLimit{"storage", want.Storage.String(), have.Storage.String()})...)
}
