package jobqueue

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// outcomeState is the state of a posted call. Each change is a compare-and-swap, of which one
// succeeds. So a withdrawn call never begins, and a call that has begun is neither withdrawn nor
// expired.
//
//	(nothing) ── a node begins it ──▶ begun ── it is over ──▶ answered
//	   │  ▲                             │
//	   │  └───── the node rejects it ───┘
//	   ├── the poster withdraws it ───▶ withdrawn
//	   └── its deadline passes ───────▶ expired
type outcomeState string

const (
	outcomeBegun     outcomeState = "begun"
	outcomeAnswered  outcomeState = "answered"
	outcomeWithdrawn outcomeState = "withdrawn"
	outcomeExpired   outcomeState = "expired"
)

// callOutcome is the outcome of a posted call. In the bucket it is a line of JSON, followed by the
// result, or the detail of the abort.
type callOutcome struct {
	Version  int          `json:"v"`
	State    outcomeState `json:"state"`
	Owner    string       `json:"owner,omitempty"` // the identity of the poster
	Node     string       `json:"node,omitempty"`  // the node that has begun it
	Since    int64        `json:"since,omitempty"` // the start on an earlier node, as written
	Aborted  bool         `json:"aborted,omitempty"`
	Code     codec.Code   `json:"code,omitempty"`
	Message  string       `json:"message,omitempty"`
	Ran      codec.Ran    `json:"ran,omitempty"`
	Deadline int64        `json:"deadline"` // of the call, milliseconds since 1970

	body     []byte
	revision uint64    // in the bucket; 0: none
	written  time.Time // by the clock of JetStream; zero: by this node
}

const outcomeVersion = 1

func (o *callOutcome) encode() []byte {
	head, _ := json.Marshal(o) // strings and numbers can be encoded
	return append(append(head, '\n'), o.body...)
}

var errOutcomeAlien = codec.ErrUnavailable.Withf("the call may have run: its outcome is nothing that this node can read")

func decodeOutcome(b []byte) (*callOutcome, error) {
	head, body, _ := bytes.Cut(b, []byte{'\n'})
	o := &callOutcome{body: body}
	if json.Unmarshal(head, o) != nil || o.Version != outcomeVersion || o.State == "" {
		return nil, errOutcomeAlien
	}
	return o, nil
}

// answered returns the outcome of a call that has ended.
func (o *callOutcome) answered(result []byte, err error) *callOutcome {
	other := *o
	other.State, other.body = outcomeAnswered, result
	if err == nil {
		return &other
	}
	a := codec.AbortOf(err)
	other.Aborted, other.Code, other.Ran, other.body = true, a.Code, a.Ran, a.Detail
	other.Message = a.Message[:min(len(a.Message), codec.MaxReason)]
	if o.Since != 0 {
		other.Ran = codec.MaybeRan // this node has not run it, but the earlier one may have
	}
	return &other
}

// takenOver returns the outcome for a node to which the call was delivered again.
func (o *callOutcome) takenOver(by string) *callOutcome {
	other := *o
	other.Node = by
	if o.Since == 0 {
		other.Since = o.written.UnixMilli()
	}
	return &other
}

// give returns the answer.
func (o *callOutcome) give() ([]byte, error) {
	if !o.Aborted {
		return o.body, nil
	}
	a := &asterisque.Abort{Code: o.Code, Message: o.Message, Remote: true, Ran: o.Ran}
	if len(o.body) > 0 {
		a.Detail = o.body
	}
	return nil, a
}

// outcomeKey returns the bucket key of a call's outcome. A client with read access to the bucket
// does not learn the call's key from it.
func outcomeKey(key []byte) string {
	hash := sha256.Sum256(key)
	return hex.EncodeToString(hash[:])
}

// outcome returns the outcome of a call, or nil if there is none yet.
func (q *queue) outcome(ctx context.Context, key []byte) (*callOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	e, err := q.outcomes.Get(ctx, outcomeKey(key))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // or deleted
		return nil, nil
	case err != nil:
		return nil, err
	}
	o, err := decodeOutcome(e.Value())
	if o != nil {
		o.revision, o.written = e.Revision(), e.Created()
	}
	return o, err
}

// state returns the state of the bucket of the outcomes, and the time by the clock of JetStream.
func (q *queue) state(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	s, err := q.js.Stream(ctx, "KV_"+q.outcomes.Bucket())
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// age returns the time since a call has begun, by the clock of JetStream alone.
func (q *queue) age(ctx context.Context, o *callOutcome) (time.Duration, error) {
	info, err := q.state(ctx)
	if err != nil {
		return 0, err
	}
	return info.TimeStamp.Sub(o.began()), nil
}

// began returns the time when the call has begun, by the clock of JetStream.
func (o *callOutcome) began() time.Time {
	if o.Since != 0 {
		return time.UnixMilli(o.Since)
	}
	return o.written
}

// decide writes o unless there is an outcome, which it returns then. That may be o itself, if the
// answer to an earlier write of it was lost.
func (q *queue) decide(ctx context.Context, key []byte, o *callOutcome) (there *callOutcome, err error) {
	for times := 0; ; times++ {
		o.revision, err = q.create(ctx, key, o)
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, err
		}
		// the answering server may lag behind the leader
		if there, err = q.outcome(ctx, key); there != nil || err != nil || !wait.HoldOff(ctx, kv.Backoff(times)) {
			return there, cmp.Or(err, ctx.Err())
		}
	}
}

// settleTries bounds the attempts to replace an outcome that changes meanwhile: other nodes that
// get the call do not change it more often.
const settleTries = 10

// settle writes the end of a call, unless another client has written one.
func (q *queue) settle(ctx context.Context, key []byte, o *callOutcome) (err error) {
	for times := range settleTries {
		switch err = q.replace(ctx, key, o); {
		case kv.IsTooLarge(err) && len(o.body)+len(o.Message) > len(errOutcomeUnkept.Message):
			o = o.answered(nil, errOutcomeUnkept)
		case kv.IsConflict(err):
			// the answering server may lag behind the leader
			if !wait.HoldOff(ctx, kv.Backoff(times)) {
				return ctx.Err()
			}
			there, failed := q.outcome(ctx, key)
			switch {
			case failed != nil || there != nil && there.State != outcomeBegun:
				return failed
			case there == nil:
				o.revision = 0 // the bucket was created again
			default:
				o.revision = there.revision
			}
		default:
			return err
		}
	}
	return err
}

// create writes o if there is no outcome.
func (q *queue) create(ctx context.Context, key []byte, o *callOutcome) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	return q.outcomes.Create(ctx, outcomeKey(key), o.encode())
}

// replace replaces an outcome by o, if it still has o.revision.
func (q *queue) replace(ctx context.Context, key []byte, o *callOutcome) (err error) {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	o.revision, err = q.outcomes.Update(ctx, outcomeKey(key), o.encode(), o.revision)
	return err
}

// undecide removes an outcome.
func (q *queue) undecide(ctx context.Context, key []byte, o *callOutcome) error {
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	return q.outcomes.Delete(ctx, outcomeKey(key), jetstream.LastRevision(o.revision))
}
