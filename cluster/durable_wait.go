package cluster

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// durableLook is how often a call that runs elsewhere is looked at, whatever its watch says: that
// may have been lost with a server of NATS.
const durableLook = 3 * time.Second

// await waits while a call runs elsewhere, and returns what becomes of it. Watching tells when to
// ask again, and decides nothing.
func (d *durables) await(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
	if d.remains(call, e) <= 0 {
		return d.lapse(ctx, call, e)
	}
	select {
	case d.waiters <- struct{}{}:
		defer func() { <-d.waiters }()
		return d.awaitEnd(ctx, call, e)
	default:
		return e, errDurableWaiters
	}
}

// awaitEnd is await for who may wait.
func (d *durables) awaitEnd(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
	changes, stop := d.watch(call)
	defer stop()
	for {
		remains := d.remains(call, e)
		if remains <= 0 {
			return d.lapse(ctx, call, e)
		}
		if err := d.awaitChange(ctx, changes, e, min(remains, durableLook)); err != nil {
			return e, err
		}
		next, err := d.store.read(ctx, call.name)
		if err != nil {
			wait.HoldOff(ctx, holdOffTime(0))
			continue
		}
		if !next.runs() {
			return next, nil
		}
		e = next
	}
}

// runs reports whether the entry is that of a call that runs.
func (e durableEntry) runs() bool {
	return e.there && e.unread == nil && e.record.State == durableRuns
}

// remains returns how long a call that runs elsewhere counts yet. The clocks of two machines are
// not compared: either this node itself has seen the entry unchanged for a lease, or it is two
// leases old by the clock of JetStream. Should servers of NATS disagree by more than that, nothing
// worse comes of it than that somebody is told too early that the call may have run.
func (d *durables) remains(call durableCall, e durableEntry) time.Duration {
	lease := e.record.lease()
	seen := time.Since(d.sights.since(call.name, e.revision))
	return lease - max(seen, d.room.age(e.written)-lease)
}

// lapse notes that the lease of a call is over, unless there is something new of it. What may run
// again is claimed in its place.
func (d *durables) lapse(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
	if call.again {
		e.lapsed = true
		return e, nil
	}
	lost := e.record.with(durableLost)
	revision, err := d.store.write(ctx, call.name, lost, e.revision)
	switch {
	case err == nil:
		e.record, e.revision = lost, revision
		return e, nil
	case isConflict(err):
		if e, err = d.store.read(ctx, call.name); err == nil {
			return e, nil
		}
	}
	return e, errDurableRan
}

// watch returns what tells that the entry of a call has changed. It never does if NATS does not let
// it be watched: then it is looked at now and then. A watch that is stopped before its context ends
// is gone at once.
func (d *durables) watch(call durableCall) (changes <-chan jetstream.KeyValueEntry, stop func()) {
	w, err := watch(d.ctx, d.store.kv, natsPatience, call.name, jetstream.MetaOnly())
	if err != nil {
		d.log.Debug("cluster: a durable call is waited for without a watch", "error", err)
		return nil, func() {}
	}
	return w.Updates(), func() { stopWatch(w) }
}

// awaitChange waits until the entry is another one, or some time has passed.
func (d *durables) awaitChange(ctx context.Context, changes <-chan jetstream.KeyValueEntry, e durableEntry, most time.Duration) error {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		select {
		case now, ok := <-changes:
			if !ok {
				changes = nil // the watch has ended
			} else if now != nil && now.Revision() > e.revision {
				return nil
			}
		case <-late.C:
			return nil
		case <-d.ctx.Done():
			return errDurableLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
