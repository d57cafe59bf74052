package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Queue lets the nodes of a name take calls that wait for them in JetStream, where [Cluster.Post]
// and [Post] put them while nobody of the name need be there. All who post to the name, and all its
// nodes, have to say the same; who says nothing says Queue{}. A node without a Name takes no calls,
// and only says what it posts with.
//
// A node that takes calls needs Config.Durable too: a call may be handed out twice, and is run once
// since the nodes remember it together. It runs them as calls of a peer within the program that
// calls itself "queue", which [asterisque.Access] has to let in. A node runs 16 of them at once;
// those that it refuses for now are handed out again after a second, or when it has said.
type Queue struct {
	// Calls is how many may wait at most; 0 is 65,536.
	Calls int64

	// Bytes is how many bytes these may have in all, with some 400 for each; 0 is 64 MiB, and the
	// least is 1 MiB. As much again is for the outcomes. JetStream reserves both.
	Bytes int64

	// Longest is how long a call may wait and run at most: a second to a month. 0 is a day. Its
	// outcome is kept for twice as long, and for an hour at least.
	Longest time.Duration
}

const (
	queueCalls   = 1 << 16
	queueBytes   = 64 << 20
	queueLongest = 24 * time.Hour
)

// complete returns q with all that has a default, or what is wrong with it.
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

// kept returns for how long outcomes are.
func (q Queue) kept() time.Duration { return max(2*q.Longest, time.Hour) }

// queueClasses are those of urgency, of which the first is taken first.
const queueClasses = 3

// queue is that of a name, as JetStream has it.
type queue struct { // fixed
	name     string
	subject  string // before the class
	longest  time.Duration
	stream   jetstream.Stream
	outcomes jetstream.KeyValue
	js       jetstream.JetStream
}

// queues are those that a Cluster has met, by name.
type queues struct {
	mu  sync.Mutex
	all map[string]*queue // guarded by mu; made by the first
}

func (qs *queues) find(name string) *queue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.all[name]
}

func (qs *queues) keep(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.all == nil {
		qs.all = make(map[string]*queue)
	}
	qs.all[q.name] = q
}

// forget lets the queue be opened anew: JetStream may have lost it.
func (qs *queues) forget(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.all[q.name] == q {
		delete(qs.all, q.name)
	}
}

// queueOf returns the queue of a name, which it makes if it is not there.
func (c *Cluster) queueOf(ctx context.Context, name string) (*queue, error) {
	return c.meetQueue(ctx, name, openStream)
}

// queueOfReceipt returns the queue of the name that a receipt says, but makes none, since anybody
// may have written that: the error is jetstream.ErrStreamNotFound if it is not there.
func (c *Cluster) queueOfReceipt(ctx context.Context, r *receipt) (*queue, error) {
	return c.meetQueue(ctx, r.Name, findStream)
}

// meetQueue returns the queue of a name, whose streams it gets from open.
func (c *Cluster) meetQueue(ctx context.Context, name string, open streamOpener) (*queue, error) {
	if q := c.queues.find(name); q != nil {
		return q, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := c.nc.LastError()
	q, err := c.openQueue(ctx, name, open, false)
	if err != nil {
		return nil, explain(c.nc, before, "opening the queue of "+name, err)
	}
	c.queues.keep(q)
	return q, nil
}
