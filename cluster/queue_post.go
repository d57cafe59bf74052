package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/priority"
)

// queueCodec encodes the parameters and results of posted calls.
var queueCodec = codec.CBOR

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
	encoded, err := queueCodec.Append(nil, &params)
	if err != nil {
		return "", neverPosted(codec.ErrBadParams, err, "the parameters of %s cannot be encoded: %v", f.Name(), err)
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
	q, err := c.queueToPost(ctx, name)
	if err != nil {
		return "", err
	}
	m := c.posted(function, params)
	if err := m.apply(opts, q.longest); err != nil {
		return "", err
	}
	r := &callReceipt{Name: name, Key: m.Key, Owner: m.Owner, Posted: m.at.UnixMilli(), Deadline: m.Deadline}
	r.Sequence, err = c.post(ctx, q, m)
	if err != nil && asterisque.Repeatable(err) {
		return "", err
	}
	return r.encode(), err
}

// queueToPost returns the queue of a name, or an error if no call can be posted to it.
func (c *Cluster) queueToPost(ctx context.Context, name string) (*nameQueue, error) {
	if !kv.IsToken(name) {
		return nil, neverPosted(codec.ErrBadParams, nil, "%q is no name of nodes", name)
	}
	if !c.nc.IsConnected() {
		return nil, neverPosted(codec.ErrUnavailable, nil, "NATS is away: post the call again later")
	}
	q, err := c.queueOf(ctx, name)
	if err != nil {
		return nil, neverPosted(codec.ErrUnavailable, err, "the queue of %s cannot be used: %v", name, err)
	}
	return q, nil
}

// posted returns a call that this node posts.
func (c *Cluster) posted(function uint16, params []byte) *postedCall {
	return &postedCall{
		Version: postedVersion, Key: newQueueKey(), Owner: c.cfg.Identity, Name: c.cfg.Name, ID: c.cfg.ID,
		Function: function, Codec: queueCodec.Name(), params: params, at: time.Now(),
	}
}

// apply applies options, or returns an error.
func (p *postedCall) apply(opts []PostOption, longest time.Duration) error {
	var how postOptions
	for _, o := range opts {
		o(&how)
	}
	until, err := how.until(p.at, longest)
	p.Deadline, p.Urgency = until.UnixMilli(), how.urgency
	return err
}

// newQueueKey returns a random key.
func newQueueKey() []byte {
	key := make([]byte, queueKey)
	rand.Read(key) // never fails
	return key
}

// until returns the deadline of a call.
func (p *postOptions) until(now time.Time, longest time.Duration) (time.Time, error) {
	last := now.Add(longest)
	switch {
	case p.deadline.IsZero():
		return last, nil
	case !p.deadline.After(now):
		return last, neverPosted(codec.ErrExpired, nil, "the deadline of the call has passed")
	case p.deadline.After(last):
		return last, neverPosted(codec.ErrBadParams, nil, "the deadline is %v from now, and calls of this queue may wait and run for %v", p.deadline.Sub(now), longest)
	}
	return p.deadline, nil
}

// post publishes a call until JetStream confirms or rejects it, or ctx ends.
func (c *Cluster) post(ctx context.Context, q *nameQueue, m *postedCall) (uint64, error) {
	msg := &nats.Msg{Subject: q.subject + "." + strconv.Itoa(classOf(m.Urgency)), Data: m.encode()}
	opts := []jetstream.PublishOpt{
		jetstream.WithMsgID(hex.EncodeToString(m.Key)), jetstream.WithMsgTTL(wholeSeconds(m.deadline().Sub(m.at))), jetstream.WithRetryAttempts(0),
	}
	open := false // an attempt may have succeeded
	for times := 0; ; times++ {
		sequence, err := c.postOnce(ctx, q, msg, opts)
		if err == nil {
			return sequence, nil
		}
		if !open && (kv.IsRejected(err) || kv.Denied(c.nc, msg.Subject)) {
			return 0, c.notPosted(q, msg.Subject, err)
		}
		open = open || !kv.IsRejected(err)
		if !wait.HoldOff(ctx, kv.Backoff(times)) || errors.Is(err, nats.ErrConnectionClosed) {
			return 0, postedPerhaps(err)
		}
	}
}

// postedPerhaps returns the error of a call that JetStream may have stored.
func postedPerhaps(cause error) error {
	a := codec.ErrUnavailable.Withf("JetStream has not confirmed whether it has the call: the receipt gives the outcome")
	a.Cause = cause
	return a
}

// postOnce makes one attempt to publish a call.
func (c *Cluster) postOnce(ctx context.Context, q *nameQueue, msg *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	ack, err := c.buckets.js.PublishMsg(ctx, msg, opts...)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// notPosted returns the error of a call that JetStream certainly has not stored.
func (c *Cluster) notPosted(q *nameQueue, subject string, err error) error {
	switch {
	case kv.IsFull(err):
		return neverPosted(codec.ErrOverloaded, err, "too many calls wait for %s: post it again later", q.name)
	case errors.Is(err, nats.ErrMaxPayload):
		return neverPosted(codec.ErrTooLarge, err, "the call does not fit into a message of this NATS server, of %d bytes (max_payload)", c.nc.MaxPayload())
	}
	c.queues.forget(q)
	if kv.Denied(c.nc, subject) {
		return neverPosted(codec.ErrUnavailable, c.nc.LastError(), "the NATS server does not let this node post to %s", q.name)
	}
	return neverPosted(codec.ErrUnavailable, err, "JetStream does not take the call: post it again later")
}

// wholeSeconds returns a time to live that JetStream accepts, at least d.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}

// neverPosted returns the error of a call that was not posted.
func neverPosted(as *asterisque.Abort, cause error, format string, args ...any) *asterisque.Abort {
	a := as.Withf("%s", fmt.Sprintf(format, args...))
	a.Ran, a.Cause = codec.NeverSent, cause
	return a
}
