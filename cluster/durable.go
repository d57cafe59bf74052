package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// Durable makes all nodes of a name share their records of durable calls ([asterisque.WithDurable],
// [asterisque.WithIdempotencyKey]), in a bucket of JetStream. A call that is repeated with its key,
// at any of the nodes, is not run again: it gets the answer of the first call, and waits for it if
// that still runs. All nodes of the name have to use the same values, except for Share, Lease and
// Idempotent. Each durable call costs two writes of JetStream, before and after it runs.
//
// If its node is lost and it is unknown whether the call has run to its end, a repetition gets an
// ErrUnavailable that is not [asterisque.Repeatable]. docs/cluster.md specifies the exact
// guarantees.
//
// A call is rejected before it runs, and is Repeatable, with ErrUnavailable while JetStream does
// not answer, with ErrOverloaded while the bucket is full, and with ErrBadParams if its key was
// used for another function, other parameters or another value codec.
type Durable struct {
	// Remember is how long a call is recorded after its answer, or after the last renewal by the
	// node that ran it: a minute to a month. 0 is an hour. Callers must repeat a call only within
	// that time.
	Remember time.Duration

	// Calls is the maximum number of recorded calls, of all callers; 0 is 65,536.
	Calls int64

	// Bytes is the maximum size of all records with their answers, and about 400 bytes for each; 0
	// is 64 MiB, and the minimum is 1 MiB. JetStream reserves a quarter more, for the answers of
	// running calls. An answer that does not fit into a message of NATS (max_payload) is not
	// recorded: a repetition gets an ErrOverloaded that is not Repeatable.
	Bytes int64

	// Share is the part of Calls and Bytes that one caller may use at each node, at most 1; 0 is a
	// quarter. Callers are distinguished in the same way as by [asterisque.DurableAnswers], which
	// has a share and bounds of its own, for the records of each node itself. Callers of posted
	// calls are distinguished by the identity of the poster.
	Share float64

	// Lease is the time without a sign of the node that runs a call after which repetitions stop
	// waiting for it: 1 second to 10 minutes; 0 is 15 seconds. A node gives such a sign each third
	// of it.
	Lease time.Duration

	// Idempotent are functions that may run more than once for one call. When other functions would
	// report that they may have run, these run again.
	Idempotent []uint16
}

const (
	durableRemember = time.Hour
	durableCalls    = 1 << 16
	durableBytes    = 64 << 20
	durableLease    = 15 * time.Second
	durableShare    = 0.25

	longestRemember = 31 * 24 * time.Hour
)

// complete returns d with its defaults, or an error if d is invalid.
func (d Durable) complete() (Durable, error) {
	d.Remember = defaulted(d.Remember, durableRemember)
	d.Calls = defaulted(d.Calls, durableCalls)
	d.Bytes = defaulted(d.Bytes, durableBytes)
	d.Lease = defaulted(d.Lease, durableLease)
	d.Share = defaulted(d.Share, durableShare)
	d.Idempotent = slices.Clone(d.Idempotent)
	switch {
	case d.Lease < time.Second || d.Lease > callstore.LongestLease:
		return d, fmt.Errorf("Durable.Lease is %v: it is 1s to %v", d.Lease, callstore.LongestLease)
	case d.Remember < time.Minute || d.Remember < 2*d.Lease || d.Remember > longestRemember:
		return d, fmt.Errorf("Durable.Remember is %v: it is 1m to %v, and two leases at least", d.Remember, longestRemember)
	case d.Calls < 1 || d.Calls > 1<<40:
		return d, fmt.Errorf("Durable.Calls is %d: it is 1 or more", d.Calls)
	case !(d.Share > 0 && d.Share <= 1):
		return d, fmt.Errorf("Durable.Share is %v: it is above 0, and at most 1", d.Share)
	case d.Bytes < 1<<20 || d.Bytes > 1<<50:
		return d, fmt.Errorf("Durable.Bytes is %d: it is 1 MiB or more", d.Bytes)
	}
	return d, nil
}

// newDurable returns the registry of the durable calls, which beginDurable opens.
func newDurable(c *Config, instance string) *callstore.Registry {
	return callstore.New(callstore.Config{
		Plan: callstore.Plan(*c.Durable), Bucket: kv.BucketName(c.Prefix, "calls_"+c.Name),
		Cluster: c.Cluster, Replicas: c.Replicas, Storage: c.storage(), Node: c.ID, Instance: instance,
		PostedBy: func(peer asterisque.Peer, m asterisque.Metadata) (string, bool) {
			by, ok := jobqueue.PosterAt(peer, m)
			return by.Identity, ok
		},
		Closed: ErrClosed,
	})
}

// beginDurable begins to record durable calls, if configured.
func (c *Cluster) beginDurable(start context.Context) error {
	if c.durable == nil {
		return nil
	}
	return public(c.durable.Open(start, callstore.Links{NATS: c.nc, JetStream: c.buckets.js, Life: c.ctx, Logger: c.node.Logger()}))
}
