// Package jobqueue lets a call wait in JetStream until a node takes it. [Queues] posts calls to the
// nodes of a name, with a receipt, by which any node of the same identity gets the outcome or
// withdraws the call. A [Worker] takes the calls of its own name, the most urgent ones first, and
// runs them on its node as those of a peer within the program.
//
// A call has a message in the stream of its name, and an outcome in a bucket, whose changes are
// compare-and-swaps: so a withdrawn call never begins, and an outcome that was returned once does
// not change. A message may be delivered twice. The call runs once nevertheless, as its key is that
// of a durable call, whose records the nodes of a name share.
package jobqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Plan has the limits of a queue, as in the Queue of package cluster, with its defaults.
type Plan struct {
	Calls   int64         // maximum number of waiting calls
	Bytes   int64         // maximum size of the waiting calls, and of the outcomes
	Longest time.Duration // maximum time for a call to wait and run
}

// Config describes the cluster, and the node that posts calls.
type Config struct {
	Prefix   string // of the names of streams, and of subjects
	Cluster  string // the name of the cluster that the streams belong to
	Replicas int
	Storage  jetstream.StorageType
	Plan     Plan
	Poster   Poster

	// Exported returns the error for the application of an error of package kv.
	Exported func(error) error
}

// Links connect queues to NATS.
type Links struct {
	NATS        *nats.Conn
	JetStream   jetstream.JetStream
	Reconnected *wait.Notice    // NATS has reconnected, or may have lost its data
	Life        context.Context // ends when the node leaves the cluster
	Logger      *slog.Logger
}

// kept returns the lifetime of outcomes.
func (q Plan) kept() time.Duration { return max(2*q.Longest, time.Hour) }

// classes is the number of urgency classes; the first one is taken first.
const classes = 3

// queue is the queue of a name in JetStream.
type queue struct { // fixed
	name     string
	subject  string // prefix of the class
	longest  time.Duration
	stream   jetstream.Stream
	outcomes jetstream.KeyValue
	js       jetstream.JetStream
}

// Queues posts calls to the nodes of names, and gets their outcomes.
type Queues struct {
	cfg   Config // fixed, as links is
	links Links

	mu  sync.Mutex
	all map[string]*queue // the opened queues, by name; guarded by mu
}

// New returns the queues of a node, which opens each at its first use.
func New(cfg Config, links Links) *Queues {
	return &Queues{cfg: cfg, links: links, all: make(map[string]*queue)}
}

func (qs *Queues) find(name string) *queue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.all[name]
}

func (qs *Queues) keep(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.all[q.name] = q
}

// forget removes a queue, so that it is opened again: JetStream may have lost it.
func (qs *Queues) forget(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.all[q.name] == q {
		delete(qs.all, q.name)
	}
}

// queueOf returns the queue of a name, and creates it if it does not exist.
func (qs *Queues) queueOf(ctx context.Context, name string) (*queue, error) {
	return qs.meetQueue(ctx, name, kv.OpenStream)
}

// queueOfReceipt returns the queue of the name in a receipt, but creates none, since the receipt
// may be forged. If there is none, the error is jetstream.ErrStreamNotFound.
func (qs *Queues) queueOfReceipt(ctx context.Context, r *callReceipt) (*queue, error) {
	return qs.meetQueue(ctx, r.Name, kv.FindStream)
}

// meetQueue returns the queue of a name, with its streams from open.
func (qs *Queues) meetQueue(ctx context.Context, name string, open kv.Opener) (*queue, error) {
	if q := qs.find(name); q != nil {
		return q, nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	before := qs.links.NATS.LastError()
	q, err := qs.openQueue(ctx, name, open, false)
	if err != nil {
		return nil, qs.cfg.Exported(kv.Explain(qs.links.NATS, before, "opening the queue of "+name, err))
	}
	qs.keep(q)
	return q, nil
}
