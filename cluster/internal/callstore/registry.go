// Package callstore makes the nodes of a name share their records of durable calls, in a bucket. A
// [Registry] is an interceptor around the calls of one node. Before a call runs, its node claims
// the key of the call by a record, and renews the record until it replaces it by the answer. So a
// call that is repeated with its key at any node gets the answer of the first one, or waits for it.
//
// Each change is a compare-and-swap on the revision of the record. A node that gives no sign for a
// lease counts as lost, and a repetition then gets the error that the call may have run, except for
// idempotent functions, which run again. A call that certainly did not run leaves no record.
package callstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/sharing"
)

// LongestLease is the maximum lease of a call.
const LongestLease = 10 * time.Minute

// Plan has the limits of the records, as in the Durable of package cluster, with its
// defaults.
type Plan struct {
	Remember   time.Duration // how long a call is recorded after its answer
	Calls      int64         // maximum number of recorded calls
	Bytes      int64         // maximum size of all records
	Share      float64       // part of Calls and Bytes that one caller may use at each node
	Lease      time.Duration // time without a sign of its node after which a call is lost
	Idempotent []uint16      // functions that may run more than once for one call
}

// Config describes the bucket, and the node.
type Config struct {
	Plan     Plan
	Bucket   string
	Cluster  string // the name of the cluster that the bucket belongs to
	Replicas int
	Storage  jetstream.StorageType

	Node     string // the id of the node
	Instance string // differs for each start of the node

	// PostedBy returns the identity that has posted a call, by the peer and the metadata of the
	// call; false if it was not posted. nil: no calls are posted.
	PostedBy func(peer asterisque.Peer, m asterisque.Metadata) (identity string, ok bool)

	Closed error // the cause of errors after close
}

// Links connect a registry to NATS.
type Links struct {
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Life      context.Context // ends when the node leaves the cluster, before close
	Logger    *slog.Logger
}

// Registry records the durable calls of the nodes of a name, together with the other nodes.
// It is an interceptor around the calls that a node serves.
type Registry struct {
	cfg  Config // fixed, as plan is
	plan Plan

	nc        *nats.Conn // set by begin, before the node serves its first call
	js        jetstream.JetStream
	ctx       context.Context // of the node
	log       *slog.Logger
	bucket    *store
	room      *kv.Room
	firstSeen *firstSeenCalls
	shares    *callerShares
	waiters   chan struct{} // semaphore of the waiting repetitions

	takeBacks chan struct{} // semaphore of the claims being taken back

	takingBack sync.WaitGroup // takes claims back; incremented with mu held, never once closed
	quiet      chan struct{}  // closed when no call runs, once closed is set

	mu     sync.Mutex
	runs   int  // running calls; guarded by mu, as closed
	closed bool // no more calls begin
}

// Bounds for the cost of repetitions, and of claims in an unknown state.
const (
	mostWaiters   = 256
	mostTakeBacks = 256
	mostSeen      = 1 << 14
)

// New returns a registry, which needs [Registry.Open] before its node serves the first call.
func New(cfg Config) *Registry {
	return &Registry{
		cfg: cfg, plan: cfg.Plan,
		firstSeen: newFirstSeen(mostSeen), shares: newShares(cfg.Plan),
		waiters: make(chan struct{}, mostWaiters), takeBacks: make(chan struct{}, mostTakeBacks),
		quiet: make(chan struct{}),
	}
}

// enter counts a call that is about to run. It reports false once durables are closed.
func (d *Registry) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.runs++
	return true
}

func (d *Registry) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs--; d.closed && d.runs == 0 {
		close(d.quiet)
	}
}

// Running returns the number of calls that run, or wait for calls that run elsewhere.
func (d *Registry) Running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs
}

// Close rejects further calls, and waits until the running ones have written their outcomes, at
// most a second: a handler may ignore that its context has ended. The
// context of the node has ended before.
func (d *Registry) Close() {
	d.mu.Lock()
	d.closed = true
	runs := d.runs
	d.mu.Unlock()
	d.takingBack.Wait()
	if runs == 0 {
		return
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-d.quiet:
	case <-late.C:
	}
}

// Intercept is the [asterisque.Interceptor] of the durable calls. All other calls pass unchanged.
func (d *Registry) Intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if !c.Inbound() || c.IdempotencyKey() == nil {
		return next(ctx, c)
	}
	params, err := c.RawParams()
	if err != nil {
		return c.Refuse(err)
	}
	if !d.enter() {
		return c.Refuse(unavailable(d.cfg.Closed))
	}
	defer d.leave()
	call := d.callOf(c.Owner(), c.IdempotencyKey(), c.Function(), params)
	call.caller = d.callerOf(ctx, c)
	if b, ok := sharing.Of(ctx); ok {
		call.codec = b.Codec
	}
	return d.remember(ctx, c, call, next)
}

// remember runs a call, unless there is a record of it.
func (d *Registry) remember(ctx context.Context, c *asterisque.Call, call call, next asterisque.Next) error {
	run, answer, err := d.admit(ctx, call)
	switch {
	case notRun(err):
		return c.Refuse(err)
	case err != nil:
		c.ForgetAnswer() // the first call may still deliver it
		return err
	case run == nil:
		return answer.give(c)
	}
	return run.carryOut(ctx, c, next)
}

// admit returns a run if the call is to run, the record with the answer of the call that it
// repeats, or an error.
func (d *Registry) admit(ctx context.Context, call call) (*run, *record, error) {
	var e entry // most calls are new, so begin without a read: otherwise the claim fails
	if err := d.checkRoom(ctx, call.caller); err != nil {
		if e, err = d.findOr(ctx, call, err); err != nil {
			return nil, nil, err
		}
	}
	for {
		if e.isFree(call) {
			run, found, err := d.claim(ctx, call, e)
			if run != nil || err != nil {
				return run, nil, err
			}
			e = found
			continue
		}
		answer, err := e.verdict(call)
		if answer != nil || err != nil {
			return nil, answer, err
		}
		if e, err = d.await(ctx, call, e); err != nil {
			return nil, nil, err
		}
	}
}

// checkRoom returns an error if there is no room for another call, or for another one of a caller.
func (d *Registry) checkRoom(ctx context.Context, caller string) error {
	if !d.room.HasRoom(ctx) {
		return errDurableFull
	}
	return d.shares.check(caller)
}

// findOr returns the entry of a call for which there is no room. If the call is new, it returns the
// error none.
func (d *Registry) findOr(ctx context.Context, call call, none error) (entry, error) {
	e, err := d.bucket.read(ctx, call.name)
	switch {
	case err != nil:
		return e, unavailable(err)
	case !e.there:
		return e, none
	}
	return e, nil
}

// Errors for rejected durable calls, and for repetitions that get no answer.
var (
	errDurableUsed    = refused(codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec"))
	errDurableFull    = refused(codec.ErrOverloaded.Withf("too many durable calls are remembered in the cluster: make it again later"))
	errDurableRan     = codec.ErrUnavailable.Withf("the call may have run: the node that ran it has given no sign of it since")
	errDurableUnkept  = codec.ErrOverloaded.Withf("the call ran, and its answer was too large to be remembered")
	errDurableWaiters = codec.ErrOverloaded.Withf("the call runs elsewhere, and too many repetitions wait here for answers: make it again later, with the same key")
	errDurableTaken   = codec.ErrUnavailable.Withf("the call ran, and this node took so long that other nodes count it as lost")
	errDurableLeft    = codec.ErrUnavailable.Withf("the call runs elsewhere, and this node leaves the cluster: make it again elsewhere, with the same key")
	errDurableAlien   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it cannot be read")
	errDurableNewer   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it was written by a newer node")
)

// refused marks a as the error of a call that did not run.
func refused(a *asterisque.Abort) *asterisque.Abort {
	a.Ran = codec.Refused
	return a
}

// unavailable returns the error of a call that does not run because JetStream does not answer.
func unavailable(err error) error {
	a := codec.ErrUnavailable.Withf("durable calls are remembered in JetStream, which does not answer: make it again later")
	a.Cause = err
	return refused(a)
}

// notRun reports whether err rejects a call that did not run.
func notRun(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && a.Ran == codec.Refused && !a.Remote
}
