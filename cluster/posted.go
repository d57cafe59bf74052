package cluster

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	// ErrNotYours reports that another identity has posted the call of a receipt: see
	// Config.Identity. It is an [asterisque.ErrUnauthorized].
	ErrNotYours error = jobqueue.ErrNotYours

	// ErrWithdrawn is the outcome of a call that was withdrawn, and did not run.
	ErrWithdrawn = jobqueue.ErrWithdrawn

	// ErrBegun reports that a call can no longer be withdrawn: it has begun, or has ended.
	ErrBegun = jobqueue.ErrBegun
)

// Receipt is the result of [Post] for a waiting call. It is text to be stored as long as the
// outcome is needed: with it, any program of the same identity, also after a restart, can get the
// outcome ([Cluster.Result]) or withdraw the call ([Cluster.Withdraw]). It is also a secret: a
// client that has it and may read the outcomes in NATS can do both. All nodes without
// Config.Identity and Config.Name share one identity.
type Receipt string

// PostOption sets one property of a posted call.
type PostOption func(*postOptions)

// postOptions is the result of the options.
type postOptions struct {
	deadline time.Time // zero: the latest possible one
	urgency  priority.Priority
}

// WithDeadline sets the time until which the call may wait and run. The default is the maximum of
// the queue (Queue.Longest).
func WithDeadline(at time.Time) PostOption { return func(p *postOptions) { p.deadline = at } }

// WithUrgency sets the priority of the call: nodes take calls above 0 before those of 0, and those
// before calls below 0. The call runs with that priority, too.
func WithUrgency(u priority.Priority) PostOption { return func(p *postOptions) { p.urgency = u } }

// Post posts a call of a typed function: see [Cluster.Post]. Parameters are encoded by
// [codec.CBOR]. If they cannot be encoded, the error is an ErrBadParams.
func Post[P, R any](ctx context.Context, c *Cluster, name string, f asterisque.Function[P, R], params P, opts ...PostOption) (Receipt, error) {
	encoded, err := jobqueue.Codec.Append(nil, &params)
	if err != nil {
		a := codec.ErrBadParams.Withf("the parameters of %s cannot be encoded: %v", f.Name(), err)
		a.Ran, a.Cause = codec.NeverSent, err
		return "", a
	}
	return c.Post(ctx, name, f.Number(), encoded, opts...)
}

// Post stores a call in JetStream, where it waits until a node of the name takes it
// ([Config].Queue), or until its deadline, after which it will not run. params are encoded in the
// same way as in a session with [codec.CBOR]. Post returns when JetStream has stored the call, with
// the receipt for its outcome.
//
// Errors are an *[asterisque.Abort]: ErrOverloaded if the queue is full; ErrUnavailable if
// JetStream does not accept the call, or ctx has ended; ErrTooLarge if it exceeds the maximum
// message size of NATS (max_payload); ErrExpired for a deadline that has passed; ErrBadParams for
// an invalid name or deadline, and for parameters that cannot be encoded. An ErrUnavailable wraps
// the reason why the queue cannot be used: [ErrNoJetStream], [ErrOtherCluster], a [*BucketError],
// nats.ErrPermissionViolation.
//
// If the error is [asterisque.Repeatable], the call was not posted. Any other error comes with a
// receipt: JetStream has not confirmed whether it has the call, and the receipt gives the outcome.
// Until ctx ends, Post retries such a call, without duplicates.
func (c *Cluster) Post(ctx context.Context, name string, function uint16, params []byte, opts ...PostOption) (Receipt, error) {
	var how postOptions
	for _, o := range opts {
		o(&how)
	}
	r, err := c.queues.Post(ctx, name, jobqueue.Job{Function: function, Params: params, Deadline: how.deadline, Urgency: how.urgency})
	return Receipt(r), err
}

// Result is [Cluster.Result] for a typed function. It decodes the result. If that fails, the error
// is an ErrBadResult.
func Result[P, R any](ctx context.Context, c *Cluster, f asterisque.Function[P, R], of Receipt) (result R, err error) {
	encoded, err := c.Result(ctx, of)
	if err != nil {
		return result, err
	}
	if err := jobqueue.Codec.Decode(encoded, &result); err != nil {
		a := codec.ErrBadResult.Withf("the result of %s cannot be decoded: %v", f.Name(), err)
		a.Cause = err
		return result, a
	}
	return result, nil
}

// Result waits until a posted call has ended, and returns its result. It may be called repeatedly,
// by any node of the identity that has posted the call. If ctx ends first, it returns the error of
// ctx. It keeps waiting during an outage of NATS.
//
// Errors are the [asterisque.Abort] of the function; ErrExpired if the deadline passed, which is
// [asterisque.Repeatable] if the call did not run; [ErrWithdrawn]; [ErrNotYours]; ErrBadParams for
// an invalid receipt; those of opening the queue, as of [Cluster.Post]; and ErrUnavailable if the
// call may have run, and its outcome is unknown: its node was lost, or the outcome has expired (see
// Queue.Longest). An outcome that was returned once does not change.
func (c *Cluster) Result(ctx context.Context, of Receipt) ([]byte, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	return c.queues.Result(ctx, string(of))
}

// Withdraw withdraws a posted call: once it returns nil the call will not run. It fails with
// [ErrBegun] if the call has begun or has ended, and otherwise as [Cluster.Result] does. NATS has
// two seconds for each answer. After an error of NATS the effect is unknown, and Withdraw may be
// retried. A call that a node has rejected can be withdrawn again.
func (c *Cluster) Withdraw(ctx context.Context, of Receipt) error {
	if err := c.Err(); err != nil {
		return err
	}
	return c.queues.Withdraw(ctx, string(of))
}
