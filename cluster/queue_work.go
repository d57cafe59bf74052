package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/localpeer"
)

const (
	// queueRuns is the maximum number of posted calls that a node runs at once.
	queueRuns = 16

	// queueLook is the interval at which a node polls for calls without a hint: calls that were
	// returned, or lost their node.
	queueLook = 5 * time.Second

	// queuePeerID is the id of the peer of a node that makes the calls of its queue.
	queuePeerID = "queue"
)

// queueWorker takes the posted calls of a name and runs them on its node.
type queueWorker struct {
	cluster *Cluster   // fixed, as all but queue are
	queue   *nameQueue // used by the taking goroutine alone
	peer    *localpeer.Peer
	log     *slog.Logger
	posted  chan struct{}      // has an element after a post
	hint    *nats.Subscription // fills posted
	slots   chan struct{}      // semaphore of the running calls
	room    *kv.Room           // room for outcomes
}

// beginQueue begins to take posted calls, if configured.
func (c *Cluster) beginQueue(start context.Context) error {
	if !c.cfg.takes {
		return nil
	}
	w := &queueWorker{cluster: c, log: c.node.Logger(), posted: make(chan struct{}, 1), slots: make(chan struct{}, c.cfg.times.queueRuns)}
	before := c.nc.LastError()
	if err := w.begin(start); err != nil {
		return explain(c.nc, before, "taking the calls that wait for "+c.cfg.Name, err)
	}
	c.worker = w
	c.running.Go(w.run) // ends with c.ctx, or when the node drains
	return nil
}

func (w *queueWorker) begin(start context.Context) (err error) {
	if err := kv.Retry(start, func(ctx context.Context) error { return w.open(ctx, true) }); err != nil {
		return err
	}
	c := w.cluster
	w.room = kv.NewRoom(math.MaxInt64, c.cfg.Queue.Bytes, w.look)
	before, subject := c.nc.LastError(), w.queue.subject+".*"
	if w.hint, err = c.nc.Subscribe(subject, func(*nats.Msg) { w.wake() }); err != nil {
		return err
	}
	if err = kv.Subscribed(start, c.nc, before, subject); err != nil {
		return err
	}
	w.peer, err = localpeer.Connect(start, c.node, queuePeerID, queueCodec)
	return err
}

// open opens the queue, and creates it if it does not exist.
func (w *queueWorker) open(ctx context.Context, check bool) error {
	q, err := w.cluster.openQueue(ctx, w.cluster.cfg.Name, kv.OpenStream, check)
	if err == nil {
		err = q.consumers(ctx, w.cluster.periods().queueAgain, w.cluster.cfg.Replicas)
	}
	if err == nil {
		w.queue = q
		w.cluster.queues.keep(q)
	}
	return err
}

// wake makes the worker look for calls.
func (w *queueWorker) wake() {
	select {
	case w.posted <- struct{}{}:
	default: // it will look anyway
	}
}

// run takes calls, the most urgent ones first, until the node leaves or drains.
func (w *queueWorker) run() {
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
func (w *queueWorker) start(t *takenMessage) {
	j := &queuedJob{worker: w, queue: w.queue, message: t}
	w.cluster.running.Go(func() { // ends with its call, and with the node at the latest
		defer func() { <-w.slots }()
		j.do()
	})
}

// next takes the most urgent waiting call. It returns nil without one, or if there is no room for
// its outcome.
func (w *queueWorker) next() *takenMessage {
	if !w.room.HasRoom(w.cluster.ctx) {
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
func (w *queueWorker) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := w.queue.state(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		w.reopen(err)
	}
	return info, err
}

// hasSlot waits for a slot. If the node leaves, it returns false, without one.
func (w *queueWorker) hasSlot() bool {
	select {
	case w.slots <- struct{}{}:
	case <-w.cluster.node.Draining():
		return false
	case <-w.cluster.ctx.Done():
		return false
	}
	if w.isOver() {
		<-w.slots
		return false
	}
	return true
}

// isOver reports whether the node leaves.
func (w *queueWorker) isOver() bool {
	select {
	case <-w.cluster.node.Draining():
		return true
	case <-w.cluster.ctx.Done():
		return true
	default:
		return false
	}
}

// takeUrgent takes the most urgent waiting call, or none.
func (w *queueWorker) takeUrgent() (*takenMessage, error) {
	for class := range queueClasses {
		t, err := w.queue.take(w.cluster.ctx, w.cluster.nc, class)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

// reopen creates streams again that JetStream may have lost.
func (w *queueWorker) reopen(cause error) {
	ctx, cancel := context.WithTimeout(w.cluster.ctx, kv.Timeout)
	defer cancel()
	if w.cluster.ctx.Err() != nil || w.open(ctx, false) == nil {
		return
	}
	w.log.Warn("cluster: calls that wait cannot be taken now", "error", cause)
}

// rests waits until there may be a call to take, and reports false if the node leaves.
func (w *queueWorker) rests() bool {
	look := time.NewTimer(w.cluster.periods().queueLook)
	defer look.Stop()
	select {
	case <-w.posted:
	case <-w.cluster.again.Next():
	case <-look.C:
	case <-w.cluster.node.Draining():
	case <-w.cluster.ctx.Done():
	}
	return !w.isOver()
}

// pause waits until a returned call is delivered again, or the node leaves.
func (w *queueWorker) pause(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		w.wake()
	case <-w.cluster.node.Draining():
	case <-w.cluster.ctx.Done():
	}
}

// finish waits until no posted call runs, or ctx ends.
func (w *queueWorker) finish(ctx context.Context) {
	if w == nil {
		return
	}
	for range cap(w.slots) {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-ctx.Done():
			return
		}
	}
}

// close ends the running calls.
func (w *queueWorker) close() {
	if w != nil {
		w.peer.Close()
	}
}
