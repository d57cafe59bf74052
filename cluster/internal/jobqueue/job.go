package jobqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// takenJob is a posted call that this node has taken.
type takenJob struct {
	worker  *Worker // fixed, as queue and taken are
	queue   *queue
	message *takenMessage
	call    *postedCall // set by do, which owns the job
}

// retryDelay is the delay before the next delivery of a call that a node could not take.
const retryDelay = time.Second

// do runs the call, or returns it to the queue.
func (j *takenJob) do() {
	call, err := decodePosted(j.message.msg.Data)
	if err != nil {
		j.unreadable(err)
		return
	}
	j.call = call
	ctx := j.worker.qs.links.Life
	own := j.own()
	there, err := j.queue.decide(ctx, call.Key, own)
	switch {
	case err != nil:
		j.unknown(err)
	case there == nil && own.State == outcomeBegun:
		j.run(ctx, own)
	case there != nil && there.State == outcomeBegun:
		j.goOn(ctx, there)
	default:
		j.done()
	}
}

// unreadable returns a message of a newer version to the queue, and drops any other message that it
// cannot decode.
func (j *takenJob) unreadable(err error) {
	log, subject := j.worker.log, j.message.msg.Subject
	if errors.Is(err, errPostedNewer) {
		log.Debug("cluster: a call that waits is handed back: a newer node has posted it", "subject", subject)
		j.message.back(defaultAgain)
		return
	}
	log.Warn("cluster: a message among the calls that wait cannot be read, and is dropped", "subject", subject, "error", err)
	j.message.never()
}

// own returns this node's first outcome of a call without an outcome.
func (j *takenJob) own() *callOutcome {
	o := &callOutcome{
		Version: outcomeVersion, State: outcomeBegun, Owner: j.call.Owner, Node: j.worker.node.ID, Deadline: j.call.Deadline,
	}
	if j.isLate() {
		o.State = outcomeExpired
	}
	return o
}

// isLate reports whether the deadline of the call has passed.
func (j *takenJob) isLate() bool { return !time.Now().Before(j.call.deadline()) }

// goOn handles a call that was delivered before, and has begun then. Its node may still run it,
// which the shared records prevent here. After its record may have expired, the call is not run
// again.
func (j *takenJob) goOn(ctx context.Context, there *callOutcome) {
	if j.isLate() {
		j.done() // its node may still write the outcome; otherwise it may have run
		return
	}
	age, err := j.queue.age(ctx, there)
	if err != nil {
		j.unknown(err)
		return
	}
	own := there.takenOver(j.worker.node.ID)
	switch err := j.queue.replace(ctx, j.call.Key, own); {
	case kv.IsConflict(err):
		j.message.back(retryDelay) // its outcome has changed meanwhile
	case err != nil:
		j.unknown(err)
	case age >= j.worker.node.Remember && !j.mayRunAgain():
		j.settle(own.answered(nil, errPostedRan))
	default:
		j.run(ctx, own)
	}
}

func (j *takenJob) mayRunAgain() bool {
	return slices.Contains(j.worker.node.Idempotent, j.call.Function)
}

// unknown returns the call to the queue after a failure to write its outcome.
func (j *takenJob) unknown(err error) {
	if !errors.Is(err, context.Canceled) {
		j.worker.log.Warn("cluster: a call that waits is handed back: what becomes of it cannot be written", "function", j.call.Function, "error", err)
	}
	j.back(retryDelay)
}

// back returns the call to the queue for d. The call keeps its slot for that time: otherwise a node
// that can take nothing would return all waiting calls again and again.
func (j *takenJob) back(d time.Duration) {
	j.message.back(d)
	j.worker.pause(min(d, defaultLook))
}

// done removes the message from the queue.
func (j *takenJob) done() {
	if err := j.message.done(context.WithoutCancel(j.worker.qs.links.Life)); err != nil {
		// a further delivery finds that the call is over
		j.worker.log.Debug("cluster: JetStream has not said that a call waits no more", "error", err)
	}
}

// run runs the call on the node, and writes its outcome before it removes the message.
func (j *takenJob) run(ctx context.Context, o *callOutcome) {
	stop := j.keep(ctx)
	defer stop()
	result, err := j.invoke(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		j.message.back(0) // this node leaves, and the other nodes have the record of the call
	case isCut(err):
		j.back(retryDelay) // this node has the record as well
	case refusedForNow(err):
		j.handBack(o, err)
	default:
		j.settle(o.answered(result, err))
	}
}

// invoke makes the call on the node.
func (j *takenJob) invoke(ctx context.Context) ([]byte, error) {
	until := j.call.deadline()
	if last := time.Now().Add(j.queue.longest); until.After(last) {
		until = last
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	// A Connection would wait for its next session, which a draining node rejects.
	on := j.worker.peer.Connection().Session()
	if on == nil {
		a := codec.ErrUnavailable.Withf("the node takes no calls now")
		a.Ran = codec.Refused
		return nil, a
	}
	return asterisque.CallOn(ctx, on, j.call.Function, j.call.params, asterisque.WithMetadata(j.call.metadata()),
		asterisque.WithIdempotencyKey(j.call.Key), asterisque.WithPriority(j.call.Urgency))
}

// refusedForNow reports whether a call did not run, and may run later or elsewhere.
func refusedForNow(err error) bool {
	passes := errors.Is(err, asterisque.ErrOverloaded) || errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed)
	return passes && asterisque.Repeatable(err)
}

// isCut reports whether a call lost its session within the program after it may have run.
func isCut(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && !a.Remote && errors.Is(a, asterisque.ErrSessionClosed) && !asterisque.Repeatable(err)
}

// keep reports to JetStream that this node still has the call, until stop is called.
func (j *takenJob) keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with stop
		for wait.HoldOff(ctx, j.worker.node.Again/3) {
			j.message.goesOn()
		}
	}()
	return cancel
}

// handBack returns a rejected call to the queue. Withdrawal and expiry are possible again, unless
// another node has begun it before.
func (j *takenJob) handBack(o *callOutcome, refusal error) {
	if o.Since == 0 {
		if err := j.queue.undecide(context.WithoutCancel(j.worker.qs.links.Life), j.call.Key, o); err != nil {
			j.worker.log.Debug("cluster: a call that was handed back counts as begun", "error", err)
		}
	}
	delay, said := asterisque.RetryAfter(refusal)
	if !said {
		delay = retryDelay
	}
	j.back(delay)
}

var errOutcomeUnkept = codec.ErrOverloaded.Withf("the call ran, and its outcome was too large to be kept")

// settle writes the outcome, and removes the message. During an outage of NATS it retries, until no
// poster asks for the outcome any more. If it is not written by then, or this node leaves, the
// message is delivered again, and the nodes answer from their records.
func (j *takenJob) settle(o *callOutcome) {
	ctx, cancel := context.WithDeadline(j.worker.qs.links.Life, j.call.deadline().Add(outcomeGrace))
	defer cancel()
	for times := 0; ; times++ {
		err := j.queue.settle(context.WithoutCancel(ctx), j.call.Key, o)
		if err == nil {
			j.done()
			return
		}
		if !isPassing(err) || !wait.HoldOff(ctx, kv.Backoff(times)) {
			j.unknown(err)
			return
		}
	}
}
