package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
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
		*one.kv, err = openBucket(ctx, b.js, want)
		if err == nil && check {
			err = checkBucket(ctx, *one.kv, want)
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
		Bucket:       bucketName(cfg.Prefix, b.name),
		Description:  "of a cluster of asterisque nodes",
		TTL:          b.life,
		History:      1,
		MaxValueSize: mostEntry,
		MaxBytes:     mostBucket,
		Storage:      cfg.times.storage(),
		Replicas:     cfg.Replicas,
		Metadata:     map[string]string{clusterKey: cfg.Cluster},
	}
	if b.name == "alive" {
		want.Storage = jetstream.MemoryStorage // signs of life need not survive a restart
	}
	return want
}

// list returns the buckets that a node with this configuration needs.
func (b *buckets) list(cfg *Config) []namedBucket {
	list := []namedBucket{{"nodes", 0, &b.nodes}, {"alive", cfg.times.life, &b.alive}, {"claims", cfg.times.life, &b.claims}}
	if cfg.ResumeAnywhere {
		list = append(list, namedBucket{"sessions", cfg.times.record, &b.sessions})
	}
	return list
}

// awaitBuckets is openBuckets for a node that joins.
func (c *Cluster) awaitBuckets(start context.Context) (b buckets, err error) {
	err = insist(start, func(ctx context.Context) (err error) {
		b, err = openBuckets(ctx, c.nc, &c.cfg, true)
		return err
	})
	return b, err
}

// insist retries open for a node that joins, while the NATS servers have yet to find each other or
// to elect a leader. A random delay spreads the requests of many nodes that join at once.
func insist(start context.Context, open func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(start, patience)
		err := open(ctx)
		cancel()
		if err == nil || !comes(err) || !wait.HoldOff(start, rand.N(time.Second)) {
			return err
		}
	}
}

// passes reports whether err is temporary, so that a later attempt may succeed.
func passes(err error) bool {
	var api *jetstream.APIError
	return !errors.Is(err, ErrNoJetStream) && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &api) && api.Code == 503)
}

// comes reports whether a bucket or stream that could not be opened may exist later: passes(err),
// or another node has created it just now, and not all servers know of it.
func comes(err error) bool {
	return passes(err) || errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// clusterKey is the metadata key of a bucket for the name of its cluster.
const clusterKey = "asterisque.cluster"

func bucketName(prefix, what string) string { return "asterisque_" + prefix + "_" + what }

// openBucket opens a bucket, and creates it if it does not exist. Opening first spares most nodes
// the permission to create one.
func openBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
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

// checkBucket returns an error if a bucket's configuration differs from want.
func checkBucket(ctx context.Context, kv jetstream.KeyValue, want jetstream.KeyValueConfig) error {
	s, err := kv.Status(ctx)
	if err != nil {
		return err
	}
	have := s.Config()
	if other := have.Metadata[clusterKey]; other != want.Metadata[clusterKey] {
		return otherCluster(want.Bucket, other, want.Metadata[clusterKey])
	}
	return differing(want.Bucket,
		checkedLimit{"time to live", want.TTL.String(), s.TTL().String()},
		checkedLimit{"history", "1", number(s.History())},
		checkedLimit{"number of replicas", number(want.Replicas), number(have.Replicas)},
		checkedLimit{"largest value", atLeast(mostEntry, int64(have.MaxValueSize)), number(have.MaxValueSize)})
}

// otherCluster returns the error for a bucket of another cluster.
func otherCluster(bucket, other, this string) error {
	return fmt.Errorf("%w: it is that of the cluster %q, and this node is to join %q (bucket %s); set Config.Prefix, or Config.Cluster", ErrOtherCluster, other, this, bucket)
}
