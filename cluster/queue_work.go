package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// queueRuns is how many posted calls a node runs at once.
	queueRuns = 16

	// queueLook is after how long a node looks for calls though nobody has told it of any: those
	// that were handed back, or whose node is gone.
	queueLook = 5 * time.Second

	// queuePeerID is what the peer of a node calls itself that makes the calls of its queue.
	queuePeerID = "queue"
)

// worker takes the posted calls of a name, and lets its node run them.
type worker struct {
	cluster *Cluster // these are fixed
	queue   *queue   // but this is of the goroutine that takes
	peer    *endpointPeer
	log     *slog.Logger
	posted  chan struct{}      // has an element if something was posted
	hint    *nats.Subscription // fills posted
	slots   chan struct{}      // has an element for each call that runs
	room    *durableRoom       // for outcomes
}

// beginQueue lets the node take posted calls from now on, if that is switched on.
func (c *Cluster) beginQueue(start context.Context) error {
	if !c.cfg.takes {
		return nil
	}
	w := &worker{cluster: c, log: c.node.Logger(), posted: make(chan struct{}, 1), slots: make(chan struct{}, c.cfg.times.queueRuns)}
	before := c.nc.LastError()
	if err := w.begin(start); err != nil {
		return explain(c.nc, before, "taking the calls that wait for "+c.cfg.Name, err)
	}
	c.worker = w
	c.running.Go(w.run) // ends with c.ctx, or when the node drains
	return nil
}

func (w *worker) begin(start context.Context) (err error) {
	if err := insist(start, func(ctx context.Context) error { return w.open(ctx, true) }); err != nil {
		return err
	}
	c := w.cluster
	w.room = &durableRoom{calls: math.MaxInt64, bytes: c.cfg.Queue.Bytes, look: w.look}
	before, subject := c.nc.LastError(), w.queue.subject+".*"
	if w.hint, err = c.nc.Subscribe(subject, func(*nats.Msg) { w.wake() }); err != nil {
		return err
	}
	if err = subscribed(start, c.nc, before, subject); err != nil {
		return err
	}
	w.peer, err = newPeer(start, c.node, queuePeerID, queueCodec)
	return err
}

// open finds the queue, or makes it.
func (w *worker) open(ctx context.Context, check bool) error {
	q, err := w.cluster.openQueue(ctx, w.cluster.cfg.Name, openStream, check)
	if err == nil {
		err = q.consumers(ctx, w.cluster.cfg.times.queueAgain, w.cluster.cfg.Replicas)
	}
	if err == nil {
		w.queue = q
		w.cluster.queues.keep(q)
	}
	return err
}

// wake lets the worker look.
func (w *worker) wake() {
	select {
	case w.posted <- struct{}{}:
	default: // it will look
	}
}

// run takes calls, the most urgent ones first, until the node leaves or drains.
func (w *worker) run() {
	defer w.hint.Unsubscribe() // fails if the connection is closed, and then nothing more comes
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

// start lets a call run, which has a slot until it is over.
func (w *worker) start(t *taken) {
	j := &job{worker: w, queue: w.queue, taken: t}
	w.cluster.running.Go(func() { // ends with its call, and with the node at the latest
		defer func() { <-w.slots }()
		j.do()
	})
}

// next takes the most urgent call that waits, or none: also if there is no room for its outcome.
func (w *worker) next() *taken {
	if w.room.check(w.cluster.ctx) != nil {
		w.log.Warn("cluster: no calls that wait are taken, since there is no room for their outcomes", "bucket", w.queue.outcomes.Bucket())
		return nil
	}
	t, err := w.takeUrgent()
	if err != nil {
		w.reopen(err)
	}
	return t
}

// look asks what the bucket of the outcomes has, and makes it again if it is gone. It is for the
// goroutine that takes.
func (w *worker) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	info, err := w.queue.state(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		w.reopen(err)
	}
	return info, err
}

// hasSlot waits for a slot, and reports false, without one, if the node leaves.
func (w *worker) hasSlot() bool {
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
func (w *worker) isOver() bool {
	select {
	case <-w.cluster.node.Draining():
		return true
	case <-w.cluster.ctx.Done():
		return true
	default:
		return false
	}
}

// takeUrgent takes the most urgent call that waits, or none.
func (w *worker) takeUrgent() (*taken, error) {
	for class := range queueClasses {
		t, err := w.queue.take(w.cluster.ctx, w.cluster.nc, class)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

// reopen makes anew what JetStream may have lost.
func (w *worker) reopen(cause error) {
	ctx, cancel := context.WithTimeout(w.cluster.ctx, patience)
	defer cancel()
	if w.cluster.ctx.Err() != nil || w.open(ctx, false) == nil {
		return
	}
	w.log.Warn("cluster: calls that wait cannot be taken now", "error", cause)
}

// rests waits until there may be something to take, and reports false if the node leaves.
func (w *worker) rests() bool {
	look := time.NewTimer(w.cluster.cfg.times.queueLook)
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

// pause waits until what was handed back is handed out again, or the node leaves.
func (w *worker) pause(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		w.wake()
	case <-w.cluster.node.Draining():
	case <-w.cluster.ctx.Done():
	}
}

// finish waits until no posted call runs any more, or ctx ends.
func (w *worker) finish(ctx context.Context) {
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

// close ends the calls that run.
func (w *worker) close() {
	if w != nil {
		w.peer.close()
	}
}
