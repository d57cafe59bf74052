package jobqueue

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

// Codec encodes the parameters and results of posted calls.
var Codec = codec.CBOR

// Job is a call to be posted.
type Job struct {
	Function uint16
	Params   []byte    // encoded by Codec
	Deadline time.Time // until which it may wait and run; zero: the latest possible one
	Urgency  priority.Priority
}

// Post stores a call in the queue of a name, and returns its receipt. If the error is Repeatable,
// the call was not posted. Any other error comes with a receipt.
func (qs *Queues) Post(ctx context.Context, name string, j Job) (receipt string, err error) {
	q, err := qs.queueToPost(ctx, name)
	if err != nil {
		return "", err
	}
	m := qs.posted(j)
	if err := m.setDeadline(j.Deadline, q.longest); err != nil {
		return "", err
	}
	r := &callReceipt{Name: name, Key: m.Key, Owner: m.Owner, Posted: m.at.UnixMilli(), Deadline: m.Deadline}
	r.Sequence, err = qs.publish(ctx, q, m)
	if err != nil && asterisque.Repeatable(err) {
		return "", err
	}
	return r.encode(), err
}

// queueToPost returns the queue of a name, or an error if no call can be posted to it.
func (qs *Queues) queueToPost(ctx context.Context, name string) (*queue, error) {
	if !kv.IsToken(name) {
		return nil, neverPosted(codec.ErrBadParams, nil, "%q is no name of nodes", name)
	}
	if !qs.links.NATS.IsConnected() {
		return nil, neverPosted(codec.ErrUnavailable, nil, "NATS is away: post the call again later")
	}
	q, err := qs.queueOf(ctx, name)
	if err != nil {
		return nil, neverPosted(codec.ErrUnavailable, err, "the queue of %s cannot be used: %v", name, err)
	}
	return q, nil
}

// posted returns a call that this node posts.
func (qs *Queues) posted(j Job) *postedCall {
	by := qs.cfg.Poster
	return &postedCall{
		Version: postedVersion, Key: newQueueKey(), Owner: by.Identity, Name: by.Name, ID: by.ID,
		Function: j.Function, Codec: Codec.Name(), Urgency: j.Urgency, params: j.Params, at: time.Now(),
	}
}

// setDeadline sets the deadline of the call, or returns an error.
func (p *postedCall) setDeadline(at time.Time, longest time.Duration) error {
	until, err := deadlineFor(at, p.at, longest)
	p.Deadline = until.UnixMilli()
	return err
}

// newQueueKey returns a random key.
func newQueueKey() []byte {
	key := make([]byte, keySize)
	rand.Read(key) // never fails
	return key
}

// deadlineFor returns the deadline of a call that is posted now; at is the requested one.
func deadlineFor(at, now time.Time, longest time.Duration) (time.Time, error) {
	last := now.Add(longest)
	switch {
	case at.IsZero():
		return last, nil
	case !at.After(now):
		return last, neverPosted(codec.ErrExpired, nil, "the deadline of the call has passed")
	case at.After(last):
		return last, neverPosted(codec.ErrBadParams, nil, "the deadline is %v from now, and calls of this queue may wait and run for %v", at.Sub(now), longest)
	}
	return at, nil
}

// publish publishes a call until JetStream confirms or rejects it, or ctx ends.
func (qs *Queues) publish(ctx context.Context, q *queue, m *postedCall) (uint64, error) {
	msg := &nats.Msg{Subject: q.subject + "." + strconv.Itoa(classOf(m.Urgency)), Data: m.encode()}
	opts := []jetstream.PublishOpt{
		jetstream.WithMsgID(hex.EncodeToString(m.Key)), jetstream.WithMsgTTL(wholeSeconds(m.deadline().Sub(m.at))), jetstream.WithRetryAttempts(0),
	}
	open := false // an attempt may have succeeded
	for times := 0; ; times++ {
		sequence, err := qs.publishOnce(ctx, q, msg, opts)
		if err == nil {
			return sequence, nil
		}
		if !open && (kv.IsRejected(err) || kv.Denied(qs.links.NATS, msg.Subject)) {
			return 0, qs.notPosted(q, msg.Subject, err)
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

// publishOnce makes one attempt to publish a call.
func (qs *Queues) publishOnce(ctx context.Context, q *queue, msg *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	ack, err := qs.links.JetStream.PublishMsg(ctx, msg, opts...)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// notPosted returns the error of a call that JetStream certainly has not stored.
func (qs *Queues) notPosted(q *queue, subject string, err error) error {
	switch {
	case kv.IsFull(err):
		return neverPosted(codec.ErrOverloaded, err, "too many calls wait for %s: post it again later", q.name)
	case errors.Is(err, nats.ErrMaxPayload):
		return neverPosted(codec.ErrTooLarge, err, "the call does not fit into a message of this NATS server, of %d bytes (max_payload)", qs.links.NATS.MaxPayload())
	}
	qs.forget(q)
	if kv.Denied(qs.links.NATS, subject) {
		return neverPosted(codec.ErrUnavailable, qs.links.NATS.LastError(), "the NATS server does not let this node post to %s", q.name)
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
