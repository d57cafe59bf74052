package callstore

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// lookInterval is the interval at which the entry of a call that runs elsewhere is read in addition
// to its watch, which may have been lost with a NATS server.
const lookInterval = 3 * time.Second

// await waits while a call runs elsewhere, and returns its next entry. The watch only triggers
// reads, and decides nothing.
func (d *Registry) await(ctx context.Context, call call, e entry) (entry, error) {
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
func (d *Registry) awaitEnd(ctx context.Context, call call, e entry) (entry, error) {
	changes, stop := d.watch(call)
	defer stop()
	for {
		remains := d.remains(call, e)
		if remains <= 0 {
			return d.lapse(ctx, call, e)
		}
		if err := d.awaitChange(ctx, changes, e, min(remains, lookInterval)); err != nil {
			return e, err
		}
		next, err := d.bucket.read(ctx, call.name)
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
func (e entry) runs() bool {
	return e.there && e.unread == nil && e.record.State == stateRuns
}

// remains returns the remaining lease of a call that runs elsewhere. It does not compare the clocks
// of two machines: the lease expires when this node has seen the entry unchanged for a lease, or
// when the entry is two leases old by the clock of JetStream. If the clocks of NATS servers differ
// by more than that, the only effect is that a repetition fails too early with the error that the
// call may have run.
func (d *Registry) remains(call call, e entry) time.Duration {
	lease := e.record.lease()
	seen := time.Since(d.firstSeen.since(call.name, e.revision))
	return lease - max(seen, d.room.Age(e.written)-lease)
}

// lapse marks the call as lost, unless its entry has changed. A call that may run again is claimed
// instead.
func (d *Registry) lapse(ctx context.Context, call call, e entry) (entry, error) {
	if call.again {
		e.lapsed = true
		return e, nil
	}
	lost := e.record.with(stateLost)
	revision, err := d.bucket.write(ctx, call.name, lost, e.revision)
	switch {
	case err == nil:
		e.record, e.revision = lost, revision
		return e, nil
	case kv.IsConflict(err):
		if e, err = d.bucket.read(ctx, call.name); err == nil {
			return e, nil
		}
	}
	return e, errDurableRan
}

// watch returns a channel that receives changes of a call's entry. The channel is nil if NATS
// rejects the watch: then the entry is polled. A watch that is stopped before its context ends is
// removed at once.
func (d *Registry) watch(call call) (changes <-chan jetstream.KeyValueEntry, stop func()) {
	w, err := kv.Watch(d.ctx, d.bucket.Bucket(), kv.RequestTimeout, call.name, jetstream.MetaOnly())
	if err != nil {
		d.log.Debug("cluster: a durable call is waited for without a watch", "error", err)
		return nil, func() {}
	}
	return w.Updates(), func() { kv.Stop(w) }
}

// awaitChange waits until the entry changes, or at most for most.
func (d *Registry) awaitChange(ctx context.Context, changes <-chan jetstream.KeyValueEntry, e entry, most time.Duration) error {
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

// firstSeenCalls records when this node has first seen the entries of calls that run elsewhere, for
// the most recently used ones.
type firstSeenCalls struct {
	most int // fixed

	mu     sync.Mutex
	byName map[string]*list.Element // elements of order by name; guarded by mu, as order
	order  list.List                // of *firstSeen; the most recently used first
}

type firstSeen struct {
	name     string
	revision uint64
	since    time.Time
}

func newFirstSeen(most int) *firstSeenCalls {
	return &firstSeenCalls{most: most, byName: make(map[string]*list.Element)}
}

// since returns the time since which the entry of a call is known with that revision: now, if it is
// new.
func (s *firstSeenCalls) since(name string, revision uint64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byName[name]
	if at == nil {
		at = s.order.PushFront(&firstSeen{name: name})
		s.byName[name] = at
	}
	s.order.MoveToFront(at)
	seen := at.Value.(*firstSeen)
	if seen.revision != revision || seen.since.IsZero() {
		seen.revision, seen.since = revision, time.Now()
	}
	if s.order.Len() > s.most {
		delete(s.byName, s.order.Remove(s.order.Back()).(*firstSeen).name)
	}
	return seen.since
}
