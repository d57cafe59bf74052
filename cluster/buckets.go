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

// buckets are where a cluster keeps what its nodes know of each other.
//
// A node has an entry in nodes, which changes when the node does, so that whoever watches a name
// hears of changes alone; and one in alive, which it puts again and again, and which goes by itself
// when it stops. Were these one, each sign of life would go to everybody who watches the name.
type buckets struct { // fixed
	js                   jetstream.JetStream
	nodes, alive, claims jetstream.KeyValue
	sessions             jetstream.KeyValue // nil without Config.ResumeAnywhere
}

const (
	mostEntry  = 16 << 10 // bytes of a value
	mostBucket = 64 << 20 // bytes of a bucket: JetStream reserves them
)

// openBuckets returns the buckets of a cluster, which it makes if they are not there. Who joins
// checks their limits; who is there goes on with those that an operator has changed.
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
	life time.Duration // of its entries; 0: for good
	kv   *jetstream.KeyValue
}

// config returns what it has to be.
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
		want.Storage = jetstream.MemoryStorage // no sign of life survives a restart
	}
	return want
}

// list returns those that a node with a configuration needs.
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

// insist lets a node that joins open what it needs. It goes on while the servers of NATS have yet
// to find each other, or to agree on who leads them. Of many that join at once not all ask at once.
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

// passes reports whether JetStream may do later what it has not done.
func passes(err error) bool {
	var api *jetstream.APIError
	return !errors.Is(err, ErrNoJetStream) && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &api) && api.Code == 503)
}

// comes reports whether a bucket that could not be opened, or a stream, may be there later: passes,
// or it was made a moment ago, perhaps by another node, and not all servers know of it.
func comes(err error) bool {
	return passes(err) || errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// clusterKey is where the metadata of a bucket has the name of its cluster.
const clusterKey = "asterisque.cluster"

func bucketName(prefix, what string) string { return "asterisque_" + prefix + "_" + what }

// openBucket returns a bucket, which it makes if it is not there. That it is mostly there already
// saves its nodes the permission to make one.
func openBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, want)
		if errors.Is(err, jetstream.ErrBucketExists) { // somebody was faster, with other limits
			kv, err = js.KeyValue(ctx, want.Bucket)
		}
	}
	if err != nil {
		return nil, err
	}
	return kv, nil
}

// checkBucket returns what is wrong with a bucket.
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
		limit{"time to live", want.TTL.String(), s.TTL().String()},
		limit{"history", "1", number(s.History())},
		limit{"number of replicas", number(want.Replicas), number(have.Replicas)},
		limit{"largest value", atLeast(mostEntry, int64(have.MaxValueSize)), number(have.MaxValueSize)})
}

// otherCluster returns the error of a bucket that is another cluster's.
func otherCluster(bucket, other, this string) error {
	return fmt.Errorf("%w: it is that of the cluster %q, and this node is to join %q (bucket %s); set Config.Prefix, or Config.Cluster", ErrOtherCluster, other, this, bucket)
}
