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
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/sharing"
)

// Durable lets all nodes of a name remember durable calls together ([asterisque.WithDurable],
// [asterisque.WithIdempotencyKey]), in a bucket of JetStream: a call that is made again with its
// key, at whichever of them, is not run again, but gets the answer of the first one, and waits for
// it if that runs. All nodes of the name have to say the same, but for Share, Lease and Idempotent.
// Each durable call costs two writes of JetStream, before and after it runs.
//
// Where nobody knows whether a call has run to its end, since the node that ran it is lost, a
// repetition gets an ErrUnavailable that is not [asterisque.Repeatable]. docs/cluster.md says what
// exactly is promised.
//
// A call is refused before it runs, and is Repeatable, with ErrUnavailable while JetStream does not
// answer, with ErrOverloaded while the bucket is full, and with ErrBadParams if its key was used
// for another function, other parameters or another value codec.
type Durable struct {
	// Remember is how long a call is remembered after its answer, or after the node that ran it
	// gave the last sign of it: a minute to a month. 0 is an hour. Callers repeat only within that
	// time.
	Remember time.Duration

	// Calls is how many are remembered at most, of all callers; 0 is 65,536.
	Calls int64

	// Bytes is how many bytes these may have in all, with their answers and some 400 for each; 0 is
	// 64 MiB, and the least is 1 MiB. JetStream reserves a quarter more, for the answers of what
	// runs. An answer that does not fit into a message of NATS (max_payload) is not remembered: a
	// repetition gets an ErrOverloaded that is not Repeatable.
	Bytes int64

	// Share is which part of Calls and Bytes one caller may use at each node, at most 1; 0 is a
	// quarter. Callers are told apart as by [asterisque.DurableAnswers], which have a share and
	// bounds of their own, for what each node remembers itself; those of posted calls by the
	// identity that has posted them.
	Share float64

	// Lease is after how long without a sign of the node that runs a call nobody waits for it any
	// more: 1 second to 10 minutes; 0 is 15 seconds. A node gives such a sign each third of it.
	Lease time.Duration

	// Idempotent are functions that may run more than once for one call. Where others tell that
	// they may have run, they are run again.
	Idempotent []uint16

	// InMemory lets the servers of NATS keep the calls in memory, and forget them when they end:
	// all of them, if Config.Replicas is 1.
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

// complete returns d with all that has a default, or what is wrong with it.
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

// durables remember the durable calls of the nodes of a name, together with the other nodes. They
// stand around the calls that a node serves.
type durables struct {
	plan     Durable // these are fixed
	replicas int
	by       owner // this node
	mark     string
	bucket   string

	nc      *nats.Conn // these are fixed by begin, before the node serves anybody
	js      jetstream.JetStream
	ctx     context.Context // of the Cluster
	log     *slog.Logger
	store   *durableStore
	room    *durableRoom
	sights  *durableSights
	shares  *durableShares
	waiters chan struct{} // has one for each repetition that waits

	takeBacks chan struct{} // has one for each claim that is being taken back

	running sync.WaitGroup // what takes claims back; added with mu held, and not once closed
	quiet   chan struct{}  // closed when nothing runs any more, once closed

	mu     sync.Mutex
	runs   int  // calls that run; guarded by mu, as closed
	closed bool // nothing begins any more
}

// These bound what repetitions, and claims of which nothing is known, may cost a node.
const (
	durableWaiters   = 256
	durableTakeBacks = 256
	durableSightings = 1 << 14
)

func newDurables(cfg *Config, instance string) *durables {
	return &durables{
		plan: *cfg.Durable, replicas: cfg.Replicas, by: owner{cfg.Name, cfg.ID, instance},
		mark: cfg.Cluster, bucket: bucketName(cfg.Prefix, "calls_"+cfg.Name),
		sights: newDurableSights(durableSightings), shares: newDurableShares(*cfg.Durable),
		waiters: make(chan struct{}, durableWaiters), takeBacks: make(chan struct{}, durableTakeBacks),
		quiet: make(chan struct{}),
	}
}

// enter counts a call that is to run. It reports false once nothing begins any more.
func (d *durables) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.runs++
	return true
}

func (d *durables) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs--; d.closed && d.runs == 0 {
		close(d.quiet)
	}
}

// close lets nothing begin any more, and waits until what runs has put its outcome in, a second at
// most: a handler may go on though its context has ended. The context of the cluster has.
func (d *durables) close() {
	if d == nil { // not switched on
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

// intercept is the [asterisque.Interceptor] of the durable calls. All others cost nothing.
func (d *durables) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if !c.Served() || c.IdempotencyKey() == nil {
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

// remember lets a call run, unless it is known.
func (d *durables) remember(ctx context.Context, c *asterisque.Call, call durableCall, next asterisque.Next) error {
	run, answer, err := d.admit(ctx, call)
	switch {
	case notRun(err):
		return c.Refuse(err)
	case err != nil:
		c.ForgetAnswer() // the first call may give it yet
		return err
	case run == nil:
		return answer.give(c)
	}
	return run.carryOut(ctx, c, next)
}

// admit returns a run if the call is to run, or the answer of the one that it repeats, or why it
// gets neither.
func (d *durables) admit(ctx context.Context, call durableCall) (*durableRun, *durableRecord, error) {
	var e durableEntry // as if there was none: mostly that is so, and else the claim fails
	if err := either(d.room.check(ctx), d.shares.check(call.caller)); err != nil {
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

// findOr returns what there is of a call for which there is no room, or none if it is new.
func (d *durables) findOr(ctx context.Context, call durableCall, none error) (durableEntry, error) {
	e, err := d.store.read(ctx, call.name)
	switch {
	case err != nil:
		return e, durableAway(err)
	case !e.there:
		return e, none
	}
	return e, nil
}

// What a durable call is refused for, and what a repetition is told that gets no answer.
var (
	errDurableUsed    = durableRefusal(codec.ErrBadParams.Withf("the idempotency key was used for another call, or with another value codec: draw a key for each call, and repeat it with the same codec"))
	errDurableFull    = durableRefusal(codec.ErrOverloaded.Withf("too many durable calls are remembered in the cluster: make it again later"))
	errDurableRan     = codec.ErrUnavailable.Withf("the call may have run: the node that ran it has given no sign of it since")
	errDurableUnkept  = codec.ErrOverloaded.Withf("the call ran, and its answer was too large to be remembered")
	errDurableWaiters = codec.ErrOverloaded.Withf("the call runs elsewhere, and too many repetitions wait here for answers: make it again later, with the same key")
	errDurableTaken   = codec.ErrUnavailable.Withf("the call ran, and this node took so long that others count it as lost")
	errDurableLeft    = codec.ErrUnavailable.Withf("the call runs elsewhere, and this node leaves the cluster: make it again elsewhere, with the same key")
	errDurableAlien   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it cannot be read")
	errDurableNewer   = codec.ErrUnavailable.Withf("the call may have run: what the cluster remembers of it was written by a newer node")
)

// durableRefusal returns a as that of a call that did not run.
func durableRefusal(a *asterisque.Abort) *asterisque.Abort {
	a.Ran = codec.Refused
	return a
}

// durableAway returns why a call does not run while JetStream does not answer.
func durableAway(err error) error {
	a := codec.ErrUnavailable.Withf("durable calls are remembered in JetStream, which does not answer: make it again later")
	a.Cause = err
	return durableRefusal(a)
}

// notRun reports whether err is a refusal of a call that did not run.
func notRun(err error) bool {
	var a *asterisque.Abort
	return errors.As(err, &a) && a.Ran == codec.Refused && !a.Remote
}
