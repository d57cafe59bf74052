package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
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
	c := w.cluster
	for times := 0; ; times++ {
		ctx, cancel := context.WithTimeout(start, patience)
		err = w.open(ctx, true)
		cancel()
		if err == nil || !passes(err) || !holdOff(start, holdOffTime(times)) {
			break
		}
	}
	if err != nil {
		return err
	}
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
	q, err := w.cluster.openQueue(ctx, w.cluster.cfg.Name, check)
	if err == nil {
		err = q.consumers(ctx, w.cluster.cfg.Replicas)
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
		t, err := w.takeUrgent()
		switch {
		case t != nil:
			q := w.queue
			w.cluster.running.Go(func() { // ends with its call, and with the node at the latest
				defer func() { <-w.slots }()
				(&job{worker: w, queue: q, taken: t}).do()
			})
			continue
		case err != nil:
			w.reopen(err)
		}
		<-w.slots
		if !w.rests() {
			return
		}
	}
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
	look := time.NewTimer(queueLook)
	defer look.Stop()
	select {
	case <-w.posted:
	case <-w.cluster.again.next():
	case <-look.C:
	case <-w.cluster.node.Draining():
	case <-w.cluster.ctx.Done():
	}
	return !w.isOver()
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
