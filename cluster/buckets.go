package cluster

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// buckets are the JetStream buckets in which the nodes of a cluster store their information for
// each other.
//
// A node has an entry in nodes, which it updates only when the node changes, so that watchers of a
// name receive only changes. It has another entry in alive, which it renews periodically, and which
// expires when the node stops. With a single entry, every sign of life would go to all watchers of
// the name.
type buckets struct { // fixed
	js                   jetstream.JetStream
	nodes, alive, claims jetstream.KeyValue
	sessions             jetstream.KeyValue // nil without Config.ResumeAnywhere
}

const (
	mostEntry  = 16 << 10 // bytes of a value
	mostBucket = 64 << 20 // bytes of a bucket: JetStream reserves them
)

// openBuckets opens the buckets of a cluster, and creates missing ones. A node that joins checks
// their limits. A node that has joined keeps using buckets after an operator has changed their
// limits.
func openBuckets(ctx context.Context, nc *nats.Conn, cfg *Config, check bool) (b buckets, err error) {
	before := nc.LastError()
	if b.js, err = jetstream.New(nc); err != nil {
		return b, err
	}
	for _, one := range b.list(cfg) {
		want := one.config(cfg)
		*one.kv, err = kv.Open(ctx, b.js, want)
		if err == nil && check {
			err = kv.Check(ctx, *one.kv, want)
		}
		if err != nil {
			return b, explain(nc, before, "opening the bucket "+want.Bucket, err)
		}
	}
	return b, nil
}

// namedBucket is one of the buckets.
type namedBucket struct {
	name string
	life time.Duration // life of its entries; 0: unlimited
	kv   *jetstream.KeyValue
}

// config returns the required configuration of the bucket.
func (b namedBucket) config(cfg *Config) jetstream.KeyValueConfig {
	want := jetstream.KeyValueConfig{
		Bucket:       kv.BucketName(cfg.Prefix, b.name),
		Description:  "of a cluster of asterisque nodes",
		TTL:          b.life,
		History:      1,
		MaxValueSize: mostEntry,
		MaxBytes:     mostBucket,
		Storage:      cfg.storage(),
		Replicas:     cfg.Replicas,
		Metadata:     map[string]string{kv.ClusterKey: cfg.Cluster},
	}
	if b.name == "alive" {
		want.Storage = jetstream.MemoryStorage // signs of life need not survive a restart
	}
	return want
}

// list returns the buckets that a node with this configuration needs.
func (b *buckets) list(cfg *Config) []namedBucket {
	list := []namedBucket{{"nodes", 0, &b.nodes}, {"alive", lifeTime, &b.alive}, {"claims", lifeTime, &b.claims}}
	if cfg.ResumeAnywhere {
		list = append(list, namedBucket{"sessions", recordTime, &b.sessions})
	}
	return list
}

// awaitBuckets is openBuckets for a node that joins.
func (c *Cluster) awaitBuckets(start context.Context) (b buckets, err error) {
	err = kv.Retry(start, func(ctx context.Context) (err error) {
		b, err = openBuckets(ctx, c.nc, &c.cfg, true)
		return err
	})
	return b, err
}
