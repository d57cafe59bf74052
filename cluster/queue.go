package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// Queue configures how the nodes of a name take posted calls. [Cluster.Post] and [Post] store these
// calls in JetStream, where they wait until a node of the name takes them. All posters to the name,
// and all its nodes, have to use the same values; nil posts with Queue{}. A node without a Name
// takes no calls, and uses the values only for its own posts.
//
// A node that takes calls needs Config.Durable too: a call may be delivered twice, and runs once
// because the nodes share their records. It runs posted calls as calls of a peer within the program
// with the id "queue", which [asterisque.Access] has to accept. A node runs 16 of them at once. A
// call that it rejects for a temporary reason is delivered again after a second, or after the delay
// of the rejection.
type Queue struct {
	// Calls is the maximum number of waiting calls; 0 is 65,536.
	Calls int64

	// Bytes is the maximum size of the waiting calls, with about 400 bytes for each; 0 is 64 MiB,
	// and the minimum is 1 MiB. The outcomes have the same limit. JetStream reserves both.
	Bytes int64

	// Longest is the maximum time for a call to wait and run: a second to a month. 0 is a day. Its
	// outcome is kept for twice that time, and for an hour at least.
	Longest time.Duration
}

const (
	queueCalls   = 1 << 16
	queueBytes   = 64 << 20
	queueLongest = 24 * time.Hour
)

// complete returns q with its defaults, or an error if q is invalid.
func (q Queue) complete() (Queue, error) {
	q.Calls = defaulted(q.Calls, queueCalls)
	q.Bytes = defaulted(q.Bytes, queueBytes)
	q.Longest = defaulted(q.Longest, queueLongest)
	switch {
	case q.Calls < 1 || q.Calls > 1<<40:
		return q, fmt.Errorf("Queue.Calls is %d: it is 1 or more", q.Calls)
	case q.Bytes < 1<<20 || q.Bytes > 1<<50:
		return q, fmt.Errorf("Queue.Bytes is %d: it is 1 MiB or more", q.Bytes)
	case q.Longest < time.Second || q.Longest > longestRemember:
		return q, fmt.Errorf("Queue.Longest is %v: it is 1s to %v", q.Longest, longestRemember)
	}
	return q, nil
}

// kept returns the lifetime of outcomes.
func (q Queue) kept() time.Duration { return max(2*q.Longest, time.Hour) }

// queueClasses is the number of urgency classes; the first one is taken first.
const queueClasses = 3

// nameQueue is the queue of a name in JetStream.
type nameQueue struct { // fixed
	name     string
	subject  string // prefix of the class
	longest  time.Duration
	stream   jetstream.Stream
	outcomes jetstream.KeyValue
	js       jetstream.JetStream
}

// nameQueues caches the queues that a Cluster has used, by name.
type nameQueues struct {
	mu  sync.Mutex
	all map[string]*nameQueue // created on first use; guarded by mu
}

func (qs *nameQueues) find(name string) *nameQueue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.all[name]
}

func (qs *nameQueues) keep(q *nameQueue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.all == nil {
		qs.all = make(map[string]*nameQueue)
	}
	qs.all[q.name] = q
}

// forget removes a queue, so that it is opened again: JetStream may have lost it.
func (qs *nameQueues) forget(q *nameQueue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.all[q.name] == q {
		delete(qs.all, q.name)
	}
}

// queueOf returns the queue of a name, and creates it if it does not exist.
func (c *Cluster) queueOf(ctx context.Context, name string) (*nameQueue, error) {
	return c.meetQueue(ctx, name, kv.OpenStream)
}

// queueOfReceipt returns the queue of the name in a receipt, but creates none, since the receipt
// may be forged. If there is none, the error is jetstream.ErrStreamNotFound.
func (c *Cluster) queueOfReceipt(ctx context.Context, r *callReceipt) (*nameQueue, error) {
	return c.meetQueue(ctx, r.Name, kv.FindStream)
}

// meetQueue returns the queue of a name, with its streams from open.
func (c *Cluster) meetQueue(ctx context.Context, name string, open kv.Opener) (*nameQueue, error) {
	if q := c.queues.find(name); q != nil {
		return q, nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	before := c.nc.LastError()
	q, err := c.openQueue(ctx, name, open, false)
	if err != nil {
		return nil, explain(c.nc, before, "opening the queue of "+name, err)
	}
	c.queues.keep(q)
	return q, nil
}
