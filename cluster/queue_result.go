package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

var (
	// ErrNotYours says that a receipt is that of a call which another identity has posted: see
	// Config.Identity. It is an [asterisque.ErrUnauthorized].
	ErrNotYours error = codec.ErrUnauthorized.Withf("cluster: the receipt is that of another identity")

	// ErrWithdrawn is the outcome of a call that was taken back, and did not run.
	ErrWithdrawn = errors.New("cluster: the call was taken back before it began")

	// ErrBegun says that a call cannot be taken back any more: it has begun, or is over.
	ErrBegun = errors.New("cluster: the call has begun, and cannot be taken back: ask for its result")
)

var (
	errPostedExpired   = &asterisque.Abort{Code: codec.Expired, Message: "the deadline passed before anybody ran the call", Remote: true, Ran: codec.Refused}
	errPostedRan       = codec.ErrUnavailable.Withf("the call may have run: the node that began it has not said how it ended")
	errPostedForgotten = codec.ErrUnavailable.Withf("the call may have run: its outcome is not kept any more")
)

// queueGrace is for how long after its deadline the outcome of a call that has begun is waited for.
const queueGrace = 2 * queueAgain

// Result is [Cluster.Result] for a typed function, whose result it decodes. One that is none of R
// is an ErrBadResult.
func Result[P, R any](ctx context.Context, c *Cluster, f asterisque.Function[P, R], of Receipt) (result R, err error) {
	encoded, err := c.Result(ctx, of)
	if err != nil {
		return result, err
	}
	if err := queueCodec.Decode(encoded, &result); err != nil {
		a := codec.ErrBadResult.Withf("the result of %s cannot be decoded: %v", f.Name(), err)
		a.Cause = err
		return result, a
	}
	return result, nil
}

// Result waits until a posted call is over, and returns its result, as often as it is asked. It may
// be called by any node of the identity that has posted the call. The wait ends with ctx, whose
// error is returned then; while NATS is away it goes on.
//
// Errors are the [asterisque.Abort] of the function; ErrExpired if the deadline passed, and it is
// [asterisque.Repeatable] if the call did not run; [ErrWithdrawn]; [ErrNotYours]; ErrBadParams for
// what is no receipt; those of opening the queue, as of [Cluster.Post]; and ErrUnavailable if the
// call may have run, and nobody knows how it ended: its node was lost, or the outcome is not kept
// any more (see Queue.Longest). An outcome that was returned stays as it is.
func (c *Cluster) Result(ctx context.Context, of Receipt) ([]byte, error) {
	r, err := c.receiptOf(of)
	if err != nil {
		return nil, err
	}
	for times := 0; ; times++ {
		o, err := c.lookForOutcome(ctx, r)
		if o != nil {
			return o.answer()
		}
		if err != nil && !isPassing(err) {
			return nil, err
		}
		if !wait.HoldOff(ctx, holdOffTime(times)) {
			return nil, ctx.Err()
		}
	}
}

// lookForOutcome returns what became of a call once it is over, and neither that nor an error
// before. What it cannot use it opens anew next time.
func (c *Cluster) lookForOutcome(ctx context.Context, r *receipt) (*callOutcome, error) {
	q, err := c.queueOfReceipt(ctx, r)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && time.Since(r.deadline()) <= queueGrace:
		return nil, nil // who posts, and who takes, makes it again
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, errPostedForgotten
	case err != nil:
		return nil, err
	}
	o, err := c.outcomeOf(ctx, q, r)
	if err != nil && isPassing(err) && ctx.Err() == nil {
		c.queues.forget(q)
	}
	return o, err
}

// isPassing reports whether NATS may answer later what it has not answered.
func isPassing(err error) bool {
	return passes(err) || isFull(err) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) // a leader is elected
}

// receiptOf returns what a receipt says, if it is that of this identity.
func (c *Cluster) receiptOf(of Receipt) (*receipt, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	r, err := of.parse()
	if err != nil {
		return nil, err
	}
	if r.Owner != c.cfg.Identity {
		return nil, ErrNotYours
	}
	return r, nil
}

// outcomeOf is lookForOutcome in a queue.
func (c *Cluster) outcomeOf(ctx context.Context, q *queue, r *receipt) (*callOutcome, error) {
	o, err := q.outcome(ctx, r.Key)
	late := time.Since(r.deadline())
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, q.outcomeless(ctx, r, late)
	case o.Owner != c.cfg.Identity:
		return nil, ErrNotYours
	case o.State != outcomeBegun:
		return o, nil
	case late > queueGrace:
		// an answer that comes now is too late
		return nil, q.settle(ctx, r.Key, o.answered(nil, errPostedRan))
	}
	return nil, nil
}

// outcomeless decides what becomes of a call of which nobody has decided anything, once its
// deadline has passed.
func (q *queue) outcomeless(ctx context.Context, r *receipt, late time.Duration) error {
	switch {
	case q.hasForgotten(r):
		return errPostedForgotten
	case late > 0:
		// a node that has the call yet finds it decided
		_, err := q.decide(ctx, r.Key, r.decided(outcomeExpired))
		return err
	}
	return nil
}

// hasForgotten reports whether the outcome of a call may be kept no more.
func (q *queue) hasForgotten(r *receipt) bool {
	return time.Since(time.UnixMilli(r.Posted)) > Queue{Longest: q.longest}.kept()
}

// decided returns the outcome of a call that does not begin.
func (r *receipt) decided(s outcomeState) *callOutcome {
	return &callOutcome{Version: outcomeVersion, State: s, Owner: r.Owner, Deadline: r.Deadline}
}

// answer returns what the caller gets of a call that is over.
func (o *callOutcome) answer() ([]byte, error) {
	switch o.State {
	case outcomeAnswered:
		return o.give()
	case outcomeWithdrawn:
		return nil, ErrWithdrawn
	case outcomeExpired:
		return nil, errPostedExpired
	}
	return nil, errOutcomeAlien
}

// Withdraw takes a posted call back: once it returns nil the call will not run. It fails with
// [ErrBegun] if the call has begun or is over, and else as [Cluster.Result] does; NATS has two
// seconds for each answer, and after an error of it nobody knows: Withdraw may be called again.
// A node that refuses the call lets it be taken back again.
func (c *Cluster) Withdraw(ctx context.Context, of Receipt) error {
	r, err := c.receiptOf(of)
	if err != nil {
		return err
	}
	q, err := c.queueOfReceipt(ctx, r)
	switch {
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	case err != nil || q.hasForgotten(r):
		return errPostedForgotten
	}
	if err := c.takeBack(ctx, q, r); err != nil {
		return err
	}
	if err := q.remove(ctx, r); err != nil {
		c.node.Logger().Debug("cluster: a call that was taken back stays in the queue", "error", err)
	}
	return nil
}

// takeBack decides that a call does not begin, if it has not.
func (c *Cluster) takeBack(ctx context.Context, q *queue, r *receipt) error {
	there, err := q.decide(ctx, r.Key, r.decided(outcomeWithdrawn))
	switch {
	case err != nil:
		return err
	case there != nil && there.Owner != c.cfg.Identity:
		return ErrNotYours
	case there != nil && there.State != outcomeWithdrawn:
		return ErrBegun
	}
	return nil
}

// remove deletes the message of a call, for its room alone: a node would let it go as well. The
// number that the receipt says may be that of another one, since a queue that was made anew counts
// from one again.
func (q *queue) remove(ctx context.Context, r *receipt) error {
	if r.Sequence == 0 { // JetStream has not told
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	m, err := q.stream.GetMsg(ctx, r.Sequence)
	if err != nil {
		return err
	}
	p, err := decodePosted(m.Data)
	if err != nil || string(p.Key) != string(r.Key) {
		return err
	}
	return q.stream.DeleteMsg(ctx, r.Sequence)
}
