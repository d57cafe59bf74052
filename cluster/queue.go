package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
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

// newQueues returns the queues that the node posts to.
func (c *Cluster) newQueues() *jobqueue.Queues {
	return jobqueue.New(jobqueue.Config{
		Prefix: c.cfg.Prefix, Cluster: c.cfg.Cluster, Replicas: c.cfg.Replicas, Storage: c.cfg.storage(),
		Plan: jobqueue.Plan(*c.cfg.Queue), Poster: jobqueue.Poster{Identity: c.cfg.Identity, Name: c.cfg.Name, ID: c.cfg.ID}, Exported: public,
	}, jobqueue.Links{
		NATS: c.nc, JetStream: c.buckets.js, Reconnected: &c.again, Life: c.ctx, Logger: c.node.Logger(),
	})
}

// beginQueue begins to take posted calls, if configured.
func (c *Cluster) beginQueue(start context.Context) (err error) {
	if !c.cfg.takes {
		return nil
	}
	c.worker, err = c.queues.Work(start, jobqueue.WorkerConfig{
		Node: c.node, Name: c.cfg.Name, ID: c.cfg.ID, Remember: c.cfg.Durable.Remember, Idempotent: c.cfg.Durable.Idempotent,
	})
	return err
}

// Poster is the node that has posted a call, by its own account. The permissions of NATS decide
// which clients may post.
type Poster struct {
	Identity string `json:"identity,omitempty"` // its Config.Identity
	Name     string `json:"name,omitempty"`     // as in Member, and so is ID
	ID       string `json:"id"`
}

// PosterOf returns the Poster of the posted call that a handler runs. ctx is the context of the
// handler, or derived from it. ok is false if the call was not posted, but made by the peer of its
// session.
func PosterOf(ctx context.Context) (p Poster, ok bool) {
	s := asterisque.SessionOf(ctx)
	if s == nil {
		return p, false
	}
	by, ok := jobqueue.PosterAt(s.Peer(), asterisque.MetadataOf(ctx))
	return Poster(by), ok
}
