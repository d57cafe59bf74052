package cluster

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// durableLook is the interval at which the entry of a call that runs elsewhere is read in addition
// to its watch, which may have been lost with a NATS server.
const durableLook = 3 * time.Second

// await waits while a call runs elsewhere, and returns its next entry. The watch only triggers
// reads, and decides nothing.
func (d *durableRegistry) await(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
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

// awaitEnd is await after the semaphore was acquired.
func (d *durableRegistry) awaitEnd(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
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
			wait.HoldOff(ctx, kv.Backoff(0))
			continue
		}
		if !next.runs() {
			return next, nil
		}
		e = next
	}
}

// runs reports whether the entry belongs to a running call.
func (e durableEntry) runs() bool {
	return e.there && e.unread == nil && e.record.State == durableRuns
}

// remains returns the remaining lease of a call that runs elsewhere. It does not compare the clocks
// of two machines: the lease expires when this node has seen the entry unchanged for a lease, or
// when the entry is two leases old by the clock of JetStream. If the clocks of NATS servers differ
// by more than that, the only effect is that a repetition fails too early with the error that the
// call may have run.
func (d *durableRegistry) remains(call durableCall, e durableEntry) time.Duration {
	lease := e.record.lease()
	seen := time.Since(d.firstSeen.since(call.name, e.revision))
	return lease - max(seen, d.room.Age(e.written)-lease)
}

// lapse marks the call as lost, unless its entry has changed. A call that may run again is claimed
// instead.
func (d *durableRegistry) lapse(ctx context.Context, call durableCall, e durableEntry) (durableEntry, error) {
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
	case kv.IsConflict(err):
		if e, err = d.store.read(ctx, call.name); err == nil {
			return e, nil
		}
	}
	return e, errDurableRan
}

// watch returns a channel that receives changes of a call's entry. The channel is nil if NATS
// rejects the watch: then the entry is polled. A watch that is stopped before its context ends is
// removed at once.
func (d *durableRegistry) watch(call durableCall) (changes <-chan jetstream.KeyValueEntry, stop func()) {
	w, err := kv.Watch(d.ctx, d.store.Bucket(), kv.RequestTimeout, call.name, jetstream.MetaOnly())
	if err != nil {
		d.log.Debug("cluster: a durable call is waited for without a watch", "error", err)
		return nil, func() {}
	}
	return w.Updates(), func() { kv.Stop(w) }
}

// awaitChange waits until the entry changes, or at most for most.
func (d *durableRegistry) awaitChange(ctx context.Context, changes <-chan jetstream.KeyValueEntry, e durableEntry, most time.Duration) error {
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
