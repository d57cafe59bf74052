package jobqueue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

var (
	// ErrNotYours reports that another identity has posted the call of a receipt.
	ErrNotYours error = codec.ErrUnauthorized.Withf("cluster: the receipt is that of another identity")

	// ErrWithdrawn is the outcome of a call that was withdrawn, and did not run.
	ErrWithdrawn = errors.New("cluster: the call was taken back before it began")

	// ErrBegun reports that a call can no longer be withdrawn: it has begun, or has ended.
	ErrBegun = errors.New("cluster: the call has begun, and cannot be taken back: ask for its result")
)

var (
	errPostedExpired   = &asterisque.Abort{Code: codec.Expired, Message: "the deadline passed before a node ran the call", Remote: true, Ran: codec.Refused}
	errPostedRan       = codec.ErrUnavailable.Withf("the call may have run: the node that began it has not said how it ended")
	errPostedForgotten = codec.ErrUnavailable.Withf("the call may have run: its outcome is not kept any more")
)

// outcomeGrace is the time after its deadline to wait for the outcome of a call that has begun.
const outcomeGrace = 2 * defaultAgain

// Result waits until a posted call has ended, and returns its result, encoded by Codec. It
// keeps waiting during an outage of NATS, until ctx ends.
func (qs *Queues) Result(ctx context.Context, receipt string) ([]byte, error) {
	r, err := qs.receiptOf(receipt)
	if err != nil {
		return nil, err
	}
	for times := 0; ; times++ {
		o, err := qs.lookForOutcome(ctx, r)
		if o != nil {
			return o.answer()
		}
		if err != nil && !isPassing(err) {
			return nil, err
		}
		if !wait.HoldOff(ctx, kv.Backoff(times)) {
			return nil, ctx.Err()
		}
	}
}

// lookForOutcome returns the outcome of a call once it has ended, and nil, nil before. It opens a
// queue that is gone again at the next call.
func (qs *Queues) lookForOutcome(ctx context.Context, r *callReceipt) (*callOutcome, error) {
	q, err := qs.queueOfReceipt(ctx, r)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && time.Since(r.deadline()) <= outcomeGrace:
		return nil, nil // the poster, or a node that takes calls, creates it again
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, errPostedForgotten
	case err != nil:
		return nil, err
	}
	o, err := qs.outcomeOf(ctx, q, r)
	if err != nil && isPassing(err) && ctx.Err() == nil {
		qs.forget(q)
	}
	return o, err
}

// isPassing reports whether an error of NATS is temporary.
func isPassing(err error) bool {
	return kv.IsTemporary(err) || kv.IsFull(err) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) // a leader is being elected
}

// receiptOf returns the content of a receipt, if it belongs to this identity.
func (qs *Queues) receiptOf(receipt string) (*callReceipt, error) {
	r, err := parseReceipt(receipt)
	if err != nil {
		return nil, err
	}
	if r.Owner != qs.cfg.Poster.Identity {
		return nil, ErrNotYours
	}
	return r, nil
}

// outcomeOf is lookForOutcome in a queue.
func (qs *Queues) outcomeOf(ctx context.Context, q *queue, r *callReceipt) (*callOutcome, error) {
	o, err := q.outcome(ctx, r.Key)
	late := time.Since(r.deadline())
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, q.outcomeless(ctx, r, late)
	case o.Owner != qs.cfg.Poster.Identity:
		return nil, ErrNotYours
	case o.State != outcomeBegun:
		return o, nil
	case late > outcomeGrace:
		// an answer after this is too late
		return nil, q.settle(ctx, r.Key, o.answered(nil, errPostedRan))
	}
	return nil, nil
}

// outcomeless expires a call without an outcome, once its deadline has passed.
func (q *queue) outcomeless(ctx context.Context, r *callReceipt, late time.Duration) error {
	switch {
	case q.hasForgotten(r):
		return errPostedForgotten
	case late > 0:
		// a node that still has the call finds this outcome
		_, err := q.decide(ctx, r.Key, r.decided(outcomeExpired))
		return err
	}
	return nil
}

// hasForgotten reports whether the outcome of a call may have expired.
func (q *queue) hasForgotten(r *callReceipt) bool {
	return time.Since(time.UnixMilli(r.Posted)) > Plan{Longest: q.longest}.kept()
}

// decided returns the outcome of a call that will not begin.
func (r *callReceipt) decided(s outcomeState) *callOutcome {
	return &callOutcome{Version: outcomeVersion, State: s, Owner: r.Owner, Deadline: r.Deadline}
}

// answer returns the result or error of a call that has ended.
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

// Withdraw withdraws a posted call, unless it has begun. It does not retry.
func (qs *Queues) Withdraw(ctx context.Context, receipt string) error {
	r, err := qs.receiptOf(receipt)
	if err != nil {
		return err
	}
	q, err := qs.queueOfReceipt(ctx, r)
	switch {
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	case err != nil || q.hasForgotten(r):
		return errPostedForgotten
	}
	if err := qs.takeBack(ctx, q, r); err != nil {
		return err
	}
	if err := q.remove(ctx, r); err != nil {
		qs.links.Logger.Debug("cluster: a call that was taken back stays in the queue", "error", err)
	}
	return nil
}

// takeBack writes that a call will not begin, unless it has begun.
func (qs *Queues) takeBack(ctx context.Context, q *queue, r *callReceipt) error {
	there, err := q.decide(ctx, r.Key, r.decided(outcomeWithdrawn))
	switch {
	case err != nil:
		return err
	case there != nil && there.Owner != qs.cfg.Poster.Identity:
		return ErrNotYours
	case there != nil && there.State != outcomeWithdrawn:
		return ErrBegun
	}
	return nil
}

// remove deletes the message of a call, only to free its room: a node would drop it as well. The
// sequence number in the receipt may belong to another message, since a queue that was created
// again counts from one.
func (q *queue) remove(ctx context.Context, r *callReceipt) error {
	if r.Sequence == 0 { // JetStream has not confirmed it
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
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
