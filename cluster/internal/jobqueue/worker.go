package jobqueue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/localpeer"
)

const (
	// defaultRuns is the maximum number of posted calls that a node runs at once.
	defaultRuns = 16

	// defaultLook is the interval at which a node polls for calls without a hint: calls that were
	// returned, or lost their node.
	defaultLook = 5 * time.Second

	// peerID is the id of the peer of a node that makes the calls of its queue.
	peerID = "queue"
)

// WorkerConfig describes the node that runs posted calls.
type WorkerConfig struct {
	Node *asterisque.Node
	Name string // of the node; the calls of other names are left to their nodes
	ID   string

	// Remember is how long the records of durable calls last, by which a call that is delivered
	// twice runs once. After that time a call that has begun runs only again if its function is
	// among Idempotent.
	Remember   time.Duration
	Idempotent []uint16

	Runs  int           // number of calls that run at once; 0 is 16
	Again time.Duration // time without a sign of its node until another delivery; 0 is 15 seconds
	Look  time.Duration // interval of polls without a hint; 0 is 5 seconds
}

// Worker takes the posted calls of a name and runs them on its node.
type Worker struct {
	qs      *Queues // fixed, as all but queue are
	node    WorkerConfig
	queue   *queue // used by the taking goroutine alone
	peer    *localpeer.Peer
	log     *slog.Logger
	wakeups chan struct{}      // has an element after a post
	hint    *nats.Subscription // fills wakeups
	slots   chan struct{}      // semaphore of the running calls
	room    *kv.Room           // room for outcomes
	running sync.WaitGroup     // the taking goroutine, and the calls
}

// Work begins to take the posted calls of the name of a node, until the life of the queues ends, or
// the node drains. start bounds the wait for NATS.
func (qs *Queues) Work(start context.Context, node WorkerConfig) (*Worker, error) {
	node.Runs, node.Again, node.Look = cmp.Or(node.Runs, defaultRuns), cmp.Or(node.Again, defaultAgain), cmp.Or(node.Look, defaultLook)
	w := &Worker{
		qs: qs, node: node, log: qs.links.Logger, wakeups: make(chan struct{}, 1), slots: make(chan struct{}, node.Runs),
	}
	before := qs.links.NATS.LastError()
	if err := w.begin(start); err != nil {
		return nil, qs.cfg.Exported(kv.Explain(qs.links.NATS, before, "taking the calls that wait for "+node.Name, err))
	}
	w.running.Go(w.run) // ends with the life, or when the node drains
	return w, nil
}

func (w *Worker) begin(start context.Context) (err error) {
	if err := kv.Retry(start, func(ctx context.Context) error { return w.open(ctx, true) }); err != nil {
		return err
	}
	nc := w.qs.links.NATS
	w.room = kv.NewRoom(math.MaxInt64, w.qs.cfg.Plan.Bytes, w.look)
	before, subject := nc.LastError(), w.queue.subject+".*"
	if w.hint, err = nc.Subscribe(subject, func(*nats.Msg) { w.wake() }); err != nil {
		return err
	}
	if err = kv.Subscribed(start, nc, before, subject); err != nil {
		return err
	}
	w.peer, err = localpeer.Connect(start, w.node.Node, peerID, Codec)
	return err
}

// open opens the queue, and creates it if it does not exist.
func (w *Worker) open(ctx context.Context, check bool) error {
	q, err := w.qs.openQueue(ctx, w.node.Name, kv.OpenStream, check)
	if err == nil {
		err = q.consumers(ctx, w.node.Again, w.qs.cfg.Replicas)
	}
	if err == nil {
		w.queue = q
		w.qs.keep(q)
	}
	return err
}

// wake makes the worker look for calls.
func (w *Worker) wake() {
	select {
	case w.wakeups <- struct{}{}:
	default: // it will look anyway
	}
}

// run takes calls, the most urgent ones first, until the node leaves or drains.
func (w *Worker) run() {
	defer w.hint.Unsubscribe() // fails if the connection is closed, and then no more hints arrive
	for w.hasSlot() {
		if t := w.next(); t != nil {
			w.start(t)
			continue
		}
		<-w.slots
		if !w.rests() {
			return
		}
	}
}

// start runs a call, which has a slot until it ends.
func (w *Worker) start(t *takenMessage) {
	j := &takenJob{worker: w, queue: w.queue, message: t}
	w.running.Go(func() { // ends with its call, and with the node at the latest
		defer func() { <-w.slots }()
		j.do()
	})
}

// next takes the most urgent waiting call. It returns nil without one, or if there is no room for
// its outcome.
func (w *Worker) next() *takenMessage {
	if !w.room.HasRoom(w.qs.links.Life) {
		w.log.Warn("cluster: no calls that wait are taken, since there is no room for their outcomes", "bucket", w.queue.outcomes.Bucket())
		return nil
	}
	t, err := w.takeUrgent()
	if err != nil {
		w.reopen(err)
	}
	return t
}

// look reads the state of the outcomes' bucket, and creates the bucket again if it is gone. Only
// the taking goroutine may call it.
func (w *Worker) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := w.queue.state(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		w.reopen(err)
	}
	return info, err
}

// hasSlot waits for a slot. If the node leaves, it returns false, without one.
func (w *Worker) hasSlot() bool {
	select {
	case w.slots <- struct{}{}:
	case <-w.node.Node.Draining():
		return false
	case <-w.qs.links.Life.Done():
		return false
	}
	if w.isOver() {
		<-w.slots
		return false
	}
	return true
}

// isOver reports whether the node leaves.
func (w *Worker) isOver() bool {
	select {
	case <-w.node.Node.Draining():
		return true
	case <-w.qs.links.Life.Done():
		return true
	default:
		return false
	}
}

// takeUrgent takes the most urgent waiting call, or none.
func (w *Worker) takeUrgent() (*takenMessage, error) {
	for class := range classes {
		t, err := w.queue.take(w.qs.links.Life, w.qs.links.NATS, class)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

// reopen creates streams again that JetStream may have lost.
func (w *Worker) reopen(cause error) {
	ctx, cancel := context.WithTimeout(w.qs.links.Life, kv.Timeout)
	defer cancel()
	if w.qs.links.Life.Err() != nil || w.open(ctx, false) == nil {
		return
	}
	w.log.Warn("cluster: calls that wait cannot be taken now", "error", cause)
}

// rests waits until there may be a call to take, and reports false if the node leaves.
func (w *Worker) rests() bool {
	look := time.NewTimer(w.node.Look)
	defer look.Stop()
	select {
	case <-w.wakeups:
	case <-w.qs.links.Reconnected.Next():
	case <-look.C:
	case <-w.node.Node.Draining():
	case <-w.qs.links.Life.Done():
	}
	return !w.isOver()
}

// pause waits until a returned call is delivered again, or the node leaves.
func (w *Worker) pause(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		w.wake()
	case <-w.node.Node.Draining():
	case <-w.qs.links.Life.Done():
	}
}

// Finish waits until no posted call runs, or ctx ends.
func (w *Worker) Finish(ctx context.Context) {
	for range cap(w.slots) {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the running calls.
func (w *Worker) Close() { w.peer.Close() }

// Wait waits until the worker has ended, after the end of its life.
func (w *Worker) Wait() { w.running.Wait() }
