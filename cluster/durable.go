package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/sharing"
)

// Durable makes all nodes of a name share their records of durable calls ([asterisque.WithDurable],
// [asterisque.WithIdempotencyKey]), in a bucket of JetStream. A call that is repeated with its key,
// at any of the nodes, is not run again: it gets the answer of the first call, and waits for it if
// that still runs. All nodes of the name have to use the same values, except for Share, Lease and
// Idempotent. Each durable call costs two writes of JetStream, before and after it runs.
//
// If its node is lost and it is unknown whether the call has run to its end, a repetition gets an
// ErrUnavailable that is not [asterisque.Repeatable]. docs/cluster.md specifies the exact
// guarantees.
//
// A call is rejected before it runs, and is Repeatable, with ErrUnavailable while JetStream does
// not answer, with ErrOverloaded while the bucket is full, and with ErrBadParams if its key was
// used for another function, other parameters or another value codec.
type Durable struct {
	// Remember is how long a call is recorded after its answer, or after the last renewal by the
	// node that ran it: a minute to a month. 0 is an hour. Callers must repeat a call only within
	// that time.
	Remember time.Duration

	// Calls is the maximum number of recorded calls, of all callers; 0 is 65,536.
	Calls int64

	// Bytes is the maximum size of all records with their answers, and about 400 bytes for each; 0
	// is 64 MiB, and the minimum is 1 MiB. JetStream reserves a quarter more, for the answers of
	// running calls. An answer that does not fit into a message of NATS (max_payload) is not
	// recorded: a repetition gets an ErrOverloaded that is not Repeatable.
	Bytes int64

	// Share is the part of Calls and Bytes that one caller may use at each node, at most 1; 0 is a
	// quarter. Callers are distinguished in the same way as by [asterisque.DurableAnswers], which
	// has a share and bounds of its own, for the records of each node itself. Callers of posted
	// calls are distinguished by the identity of the poster.
	Share float64

	// Lease is the time without a sign of the node that runs a call after which repetitions stop
	// waiting for it: 1 second to 10 minutes; 0 is 15 seconds. A node gives such a sign each third
	// of it.
	Lease time.Duration

	// Idempotent are functions that may run more than once for one call. When other functions would
	// report that they may have run, these run again.
	Idempotent []uint16

	// InMemory makes the NATS servers keep the records in memory, and lose them when they stop: all
	// records, if Config.Replicas is 1.
	InMemory bool
}

const (
	durableRemember = time.Hour
	durableCalls    = 1 << 16
	durableBytes    = 64 << 20
	durableLease    = 15 * time.Second
	durableShare    = 0.25

	longestRemember = 31 * 24 * time.Hour
	longestLease    = 10 * time.Minute
)

// complete returns d with its defaults, or an error if d is invalid.
func (d Durable) complete() (Durable, error) {
	d.Remember = defaulted(d.Remember, durableRemember)
	d.Calls = defaulted(d.Calls, durableCalls)
	d.Bytes = defaulted(d.Bytes, durableBytes)
	d.Lease = defaulted(d.Lease, durableLease)
	d.Share = defaulted(d.Share, durableShare)
	d.Idempotent = slices.Clone(d.Idempotent)
	switch {
	case d.Lease < time.Second || d.Lease > longestLease:
		return d, fmt.Errorf("Durable.Lease is %v: it is 1s to %v", d.Lease, longestLease)
	case d.Remember < time.Minute || d.Remember < 2*d.Lease || d.Remember > longestRemember:
		return d, fmt.Errorf("Durable.Remember is %v: it is 1m to %v, and two leases at least", d.Remember, longestRemember)
	case d.Calls < 1 || d.Calls > 1<<40:
		return d, fmt.Errorf("Durable.Calls is %d: it is 1 or more", d.Calls)
	case !(d.Share > 0 && d.Share <= 1):
		return d, fmt.Errorf("Durable.Share is %v: it is above 0, and at most 1", d.Share)
	case d.Bytes < 1<<20 || d.Bytes > 1<<50:
		return d, fmt.Errorf("Durable.Bytes is %d: it is 1 MiB or more", d.Bytes)
	}
	return d, nil
}

// durableRegistry records the durable calls of the nodes of a name, together with the other nodes.
// It is an interceptor around the calls that a node serves.
type durableRegistry struct {
	plan     Durable // fixed, as all up to bucket
	replicas int
	node     string // the id of this node
	instance string
	mark     string
	bucket   string

	nc        *nats.Conn // set by begin, before the node serves its first call
	js        jetstream.JetStream
	ctx       context.Context // of the Cluster
	log       *slog.Logger
	store     *durableStore
	room      *kv.Room
	firstSeen *firstSeenCalls
	shares    *durableShares
	waiters   chan struct{} // semaphore of the waiting repetitions

	takeBacks chan struct{} // semaphore of the claims being taken back

	running sync.WaitGroup // takes claims back; incremented with mu held, never once closed
	quiet   chan struct{}  // closed when no call runs, once closed is set

	mu     sync.Mutex
	runs   int  // running calls; guarded by mu, as closed
	closed bool // no more calls begin
}

// Bounds for the cost of repetitions, and of claims in an unknown state.
const (
	durableWaiters   = 256
	durableTakeBacks = 256
	durableSightings = 1 << 14
)

func newDurables(cfg *Config, instance string) *durableRegistry {
	return &durableRegistry{
		plan: *cfg.Durable, replicas: cfg.Replicas, node: cfg.ID, instance: instance,
		mark: cfg.Cluster, bucket: kv.BucketName(cfg.Prefix, "calls_"+cfg.Name),
		firstSeen: newDurableSights(durableSightings), shares: newDurableShares(*cfg.Durable),
		waiters: make(chan struct{}, durableWaiters), takeBacks: make(chan struct{}, durableTakeBacks),
		quiet: make(chan struct{}),
	}
}

// enter counts a call that is about to run. It reports false once durables are closed.
func (d *durableRegistry) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.runs++
	return true
}

func (d *durableRegistry) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs--; d.closed && d.runs == 0 {
		close(d.quiet)
	}
}

// close rejects further calls, and waits until the running ones have written their outcomes, at
// most a second: a handler may ignore that its context has ended. The context of the cluster has
// ended before.
func (d *durableRegistry) close() {
	if d == nil { // not configured
		return
	}
	d.mu.Lock()
	d.closed = true
	runs := d.runs
	d.mu.Unlock()
	d.running.Wait()
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

// intercept is the [asterisque.Interceptor] of the durable calls. All other calls pass unchanged.
func (d *durableRegistry) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if !c.Inbound() || c.IdempotencyKey() == nil {
		return next(ctx, c)
	}
	params, err := c.RawParams()
	if err != nil {
		return c.Refuse(err)
	}
	if !d.enter() {
		return c.Refuse(durableAway(ErrClosed))
	}
	defer d.leave()
	call := d.callOf(c.Owner(), c.IdempotencyKey(), c.Function(), params)
	call.caller = durableCaller(ctx, c)
	if b, ok := sharing.Of(ctx); ok {
		call.codec = b.Codec
	}
	return d.remember(ctx, c, call, next)
}

// remember runs a call, unless there is a record of it.
func (d *durableRegistry) remember(ctx context.Context, c *asterisque.Call, call durableCall, next asterisque.Next) error {
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
func (d *durableRegistry) admit(ctx context.Context, call durableCall) (*durableRun, *durableRecord, error) {
	var e durableEntry // most calls are new, so begin without a read: otherwise the claim fails
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
func (d *durableRegistry) checkRoom(ctx context.Context, caller string) error {
	if !d.room.HasRoom(ctx) {
		return errDurableFull
	}
	return d.shares.check(caller)
}

// findOr returns the entry of a call for which there is no room. If the call is new, it returns the
// error none.
func (d *durableRegistry) findOr(ctx context.Context, call durableCall, none error) (durableEntry, error) {
	e, err := d.store.read(ctx, call.name)
	switch {
	case err != nil:
		return e, durableAway(err)
	case !e.there:
		return e, none
	}
	return e, nil
}

// Errors for rejected durable calls, and for repetitions that get no answer.
var (
	errDurableUsed    = durableRefusal(codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec"))
	errDurableFull    = durableRefusal(codec.ErrOverloaded.Withf("too many durable calls are remembered in the cluster: make it again later"))
	errDurableRan     = codec.ErrUnavailable.Withf("the call may have run: the node that ran it has given no sign of it since")
	errDurableUnkept  = codec.ErrOverloaded.Withf("the call ran, and its answer was too large to be remembered")
	errDurableWaiters = codec.ErrOverloaded.Withf("the call runs elsewhere, and too many repetitions wait here for answers: make it again later, with the same key")
	errDurableTaken   = codec.ErrUnavailable.Withf("the call ran, and this node took so long that other nodes count it as lost")
	errDurableLeft    = codec.ErrUnavailable.Withf("the call runs elsewhere, and this node leaves the cluster: make it again elsewhere, with the same key")
	errDurableAlien   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it cannot be read")
	errDurableNewer   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it was written by a newer node")
)

// durableRefusal marks a as the error of a call that did not run.
func durableRefusal(a *asterisque.Abort) *asterisque.Abort {
	a.Ran = codec.Refused
	return a
}

// durableAway returns the error of a call that does not run because JetStream does not answer.
func durableAway(err error) error {
	a := codec.ErrUnavailable.Withf("durable calls are remembered in JetStream, which does not answer: make it again later")
	a.Cause = err
	return durableRefusal(a)
}

// notRun reports whether err rejects a call that did not run.
func notRun(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && a.Ran == codec.Refused && !a.Remote
}
