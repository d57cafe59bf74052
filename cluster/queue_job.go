package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// job is a posted call that this node has taken.
type job struct {
	worker *worker // these are fixed
	queue  *queue
	taken  *taken
	call   *posted // is set by do, which has the job
}

// queueLater is after how long a call is handed out again that a node could not take.
const queueLater = time.Second

// do sees to it that the call is run, or handed back.
func (j *job) do() {
	call, err := decodePosted(j.taken.msg.Data)
	if err != nil {
		j.worker.log.Warn("cluster: a message among the calls that wait cannot be read, and is dropped", "subject", j.taken.msg.Subject, "error", err)
		j.taken.never()
		return
	}
	j.call = call
	ctx := j.worker.cluster.ctx
	own := &callOutcome{Version: outcomeVersion, State: outcomeBegun, Owner: call.Owner, Node: j.worker.cluster.cfg.ID, Deadline: call.Deadline}
	if !time.Now().Before(call.deadline()) {
		own.State = outcomeExpired
	}
	there, err := j.queue.decide(ctx, call.Key, own)
	switch {
	case err != nil:
		j.unknown(err)
	case there == nil && own.State == outcomeBegun:
		j.run(ctx, own, true)
	case there != nil && there.State == outcomeBegun:
		// it was handed out again: the nodes remember together that it runs, or has
		j.run(ctx, there, false)
	default:
		j.done()
	}
}

// unknown hands the call back, of which this node cannot write what becomes of it.
func (j *job) unknown(err error) {
	if !errors.Is(err, context.Canceled) {
		j.worker.log.Warn("cluster: a call that waits is handed back: what becomes of it cannot be written", "function", j.call.Function, "error", err)
	}
	j.taken.back(queueLater)
}

// done lets the message go.
func (j *job) done() {
	if err := j.taken.done(context.WithoutCancel(j.worker.cluster.ctx)); err != nil {
		// if it is handed out again, it is met as one that is over
		j.worker.log.Debug("cluster: JetStream has not said that a call waits no more", "error", err)
	}
}

// run lets the node run the call, and writes its outcome before the message goes. first says that
// this node wrote that it has begun.
func (j *job) run(ctx context.Context, o *callOutcome, first bool) {
	stop := j.keep(ctx)
	result, err := j.invoke(ctx)
	stop()
	switch {
	case ctx.Err() != nil && err != nil:
		j.taken.back(0) // this node leaves, and the others know what has become of the call
	case refusedForNow(err):
		j.handBack(o, first, err)
	default:
		j.settle(o.answered(result, err))
	}
}

// invoke makes the call at the node.
func (j *job) invoke(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithDeadline(ctx, j.call.deadline())
	defer cancel()
	// To wait for the node while it refuses its peer would only hold calls up that other nodes
	// could take.
	return asterisque.CallOn(ctx, j.worker.peer.conn, j.call.Function, j.call.params,
		asterisque.WithIdempotencyKey(j.call.Key), asterisque.WithPriority(j.call.Urgency), asterisque.WithFailFast())
}

// refusedForNow reports whether a call did not run, and may run later or elsewhere.
func refusedForNow(err error) bool {
	passes := errors.Is(err, asterisque.ErrOverloaded) || errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed)
	return passes && asterisque.Repeatable(err)
}

// keep tells JetStream that this node has the call, until stop is called.
func (j *job) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with stop
		for holdOff(ctx, queueAgain/3) {
			j.taken.goesOn()
		}
	}()
	return cancel
}

// handBack hands back a call that the node has refused. It can be taken back, and expires, again.
func (j *job) handBack(o *callOutcome, first bool, refusal error) {
	if first {
		if err := j.queue.undecide(context.WithoutCancel(j.worker.cluster.ctx), j.call.Key, o); err != nil {
			j.worker.log.Debug("cluster: a call that was handed back counts as begun", "error", err)
		}
	}
	delay, said := asterisque.RetryAfter(refusal)
	if !said {
		delay = queueLater
	}
	j.taken.back(delay)
}

var errOutcomeUnkept = codec.ErrOverloaded.Withf("the call ran, and its outcome was too large to be kept")

// settle writes the outcome, and lets the message go. While that does not succeed, the message is
// handed out again, and the nodes answer from what they remember.
func (j *job) settle(o *callOutcome) {
	ctx := context.WithoutCancel(j.worker.cluster.ctx)
	err := j.queue.replace(ctx, j.call.Key, o)
	if isFull(err) || errors.Is(err, nats.ErrMaxPayload) {
		err = j.queue.replace(ctx, j.call.Key, o.answered(nil, errOutcomeUnkept))
	}
	if err == nil {
		j.done()
		return
	}
	j.unknown(err)
}
