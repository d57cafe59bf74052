package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// view is who is there of those that a filter matches, kept current while somebody uses it.
type view struct {
	nc     *nats.Conn // these are fixed
	kv     jetstream.KeyValue
	filter string        // of keys, "orders.*" or "*.4711"
	life   time.Duration // for which those stay that a new look does not find
	again  *wait.Notice  // NATS is there again
	log    *slog.Logger

	changed wait.Notice

	mu      sync.Mutex
	members map[string]Member    // by key; guarded by mu, as all below
	missing map[string]time.Time // members that the last look has not found: since when
	gone    map[string]Kind      // how the last ones have gone, for at most mostGone
	looked  bool                 // the first look is over
	failure error                // of watching, until it succeeds
}

const (
	mostGone = 1024

	// lookAgain is after how long all is looked at again, though NATS tells of each change: should
	// that fail in some way, nobody is wrong for longer. It is longer for names of many nodes.
	lookAgain = 5 * time.Minute
)

// untilNextLook returns when all is to be looked at again.
func (v *view) untilNextLook() time.Duration {
	members, _ := v.all()
	d := lookAgain * time.Duration(1+len(members)/100)
	return d - rand.N(d/5)
}

func newView(nc *nats.Conn, kv jetstream.KeyValue, filter string, life time.Duration, again *wait.Notice, log *slog.Logger) *view {
	return &view{
		nc: nc, kv: kv, filter: filter, life: life, again: again, log: log,
		members: make(map[string]Member), missing: make(map[string]time.Time), gone: make(map[string]Kind),
	}
}

// follow keeps the view current until ctx ends.
func (v *view) follow(ctx context.Context) {
	for ctx.Err() == nil {
		again := v.again.Next()
		err := v.look(ctx, again)
		v.fail(err)
		if err != nil && ctx.Err() == nil {
			v.log.Warn("cluster: who is there cannot be seen, the last ones stay", "keys", v.filter, "error", err)
		}
		select {
		case <-again:
		default:
			if err == nil {
				continue // it is time for another look, and nobody else's
			}
		}
		wait.HoldOff(ctx, rand.N(v.life/3)) // after an outage all would look at once
	}
}

// look takes all entries, and then each change, until it is time for another look.
func (v *view) look(ctx context.Context, again <-chan struct{}) error {
	before := v.nc.LastError()
	w, err := watch(ctx, v.kv, patience, v.filter)
	if err != nil {
		return permission(v.nc, before, "."+v.filter, err)
	}
	defer stopWatch(w)
	found := make(map[string]bool) // nil once all have come that are there
	overdue, looked := time.NewTicker(v.life/4), time.Now()
	defer overdue.Stop()
	end := time.NewTimer(v.untilNextLook())
	defer end.Stop()
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errNotWatched
			case e == nil:
				v.lookedFor(found)
				found = nil
				end.Reset(v.untilNextLook())
			default:
				v.take(e)
				if found != nil {
					found[e.Key()] = true
				}
			}
		case <-overdue.C:
			// a late tick judges no member: the signs of life that came meanwhile are unread
			if !wait.Late(time.Since(looked), v.life/4) {
				v.dropMissing(time.Now().Add(-v.life))
			}
			looked = time.Now()
		case <-again:
			return nil
		case <-end.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// take takes an entry, or the mark of one that was deleted.
func (v *view) take(e jetstream.KeyValueEntry) {
	defer v.changed.Signal()
	v.mu.Lock()
	defer v.mu.Unlock()
	key := e.Key()
	delete(v.missing, key)
	switch e.Operation() {
	case jetstream.KeyValuePurge:
		v.removeLocked(key, Left)
	case jetstream.KeyValueDelete:
		v.removeLocked(key, Lost)
	default:
		m, err := decodeMember(e)
		if err != nil {
			v.log.Warn("cluster: an entry is ignored", "error", err)
			return
		}
		v.members[key] = m
		delete(v.gone, key)
	}
}

func (v *view) removeLocked(key string, how Kind) {
	if _, ok := v.members[key]; !ok {
		return
	}
	delete(v.members, key)
	for other := range v.gone { // whichever
		if len(v.gone) < mostGone {
			break
		}
		delete(v.gone, other)
	}
	v.gone[key] = how
}

// lookedFor notes that these were found, and all others are missing. They may be back at once:
// JetStream may have lost all that it had, and then everybody says anew that it is there.
func (v *view) lookedFor(found map[string]bool) {
	defer v.changed.Signal()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looked, v.failure = true, nil
	for key := range v.members {
		if _, known := v.missing[key]; !found[key] && !known {
			v.missing[key] = time.Now()
		}
	}
}

// dropMissing removes those that have been missing since before a time.
func (v *view) dropMissing(since time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, at := range v.missing {
		if at.Before(since) {
			delete(v.missing, key)
			v.removeLocked(key, Lost)
			defer v.changed.Signal()
		}
	}
}

func (v *view) fail(err error) {
	if err == nil {
		return
	}
	v.mu.Lock()
	v.failure = err
	v.mu.Unlock()
	v.changed.Signal()
}

// all returns the members in the order of their ids, once there was a first look.
func (v *view) all() (members []Member, looked bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	members = slices.Collect(maps.Values(v.members))
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, v.looked
}

// howGone returns how a node has gone that was a member.
func (v *view) howGone(key string) Kind {
	v.mu.Lock()
	defer v.mu.Unlock()
	return defaulted(v.gone[key], Lost)
}

// err returns why the view is not current, or nil.
func (v *view) err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failure
}

// views are the views that are in use, so that who uses one name twice watches it once.
type views struct {
	running sync.WaitGroup // what follows views; one is added with mu held, and none once closed

	mu     sync.Mutex
	all    map[string]*use // by filter; guarded by mu, as closed; made by the first
	closed bool            // views are followed no more
}

// use is a view, and how many use it.
type use struct {
	view  *view // these are fixed
	stop  context.CancelFunc
	over  chan struct{} // closed when it is followed no more
	users int           // guarded by mu of views
}

// close waits until no view is followed any more, once their context has ended.
func (vs *views) close() {
	vs.mu.Lock()
	vs.closed = true
	vs.mu.Unlock()
	vs.running.Wait()
}

// join returns the view for a filter, made by open if nobody has it, and a function to call when it
// is not needed any more.
func (vs *views) join(ctx context.Context, filter string, open func() *view) (v *view, leave func()) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.all == nil {
		vs.all = make(map[string]*use)
	}
	u := vs.all[filter]
	if u == nil {
		u = vs.beginLocked(ctx, open())
		vs.all[filter] = u
	}
	u.users++
	return u.view, sync.OnceFunc(func() { vs.leave(filter, u) })
}

// beginLocked lets a view be followed.
func (vs *views) beginLocked(ctx context.Context, v *view) *use {
	u := &use{view: v, over: make(chan struct{})}
	ctx, u.stop = context.WithCancel(ctx)
	follow := vs.running.Go
	if vs.closed {
		follow = func(f func()) { f() } // which sees that ctx has ended
	}
	follow(func() { // ends with the last user, or with ctx
		defer close(u.over)
		v.follow(ctx)
	})
	return u
}

func (vs *views) leave(filter string, u *use) {
	vs.mu.Lock()
	u.users--
	last := u.users == 0
	if last {
		delete(vs.all, filter)
	}
	vs.mu.Unlock()
	if last {
		u.stop()
		<-u.over
	}
}
