package presence

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// View is the present set of members that a filter matches, kept current while it is in use.
type View struct {
	env    Env    // fixed, as filter is
	filter string // of keys, "orders.*" or "*.4711"

	changed wait.Notice

	mu      sync.Mutex
	members map[string]Member    // by key; guarded by mu, as all below
	missing map[string]time.Time // members that the last look has not found, with the time since
	gone    map[string]Kind      // kinds of the last removals, at most mostGone
	looked  bool                 // the first look is complete
	failure error                // of the watch, until it succeeds
}

const (
	mostGone = 1024

	// lookAgain is the interval of complete looks, in addition to the changes that NATS reports: it
	// bounds the time of an error after a lost change. It is longer for names of many nodes.
	lookAgain = 5 * time.Minute
)

// untilNextLook returns the time until the next complete look.
func (v *View) untilNextLook() time.Duration {
	members, _ := v.Members()
	d := lookAgain * time.Duration(1+len(members)/100)
	return d - rand.N(d/5)
}

func newView(env Env, filter string) *View {
	return &View{
		env: env, filter: filter,
		members: make(map[string]Member), missing: make(map[string]time.Time), gone: make(map[string]Kind),
	}
}

// follow keeps the view current until ctx ends.
func (v *View) follow(ctx context.Context) {
	for ctx.Err() == nil {
		again := v.env.Reconnected.Next()
		err := v.look(ctx, again)
		v.fail(err)
		if err != nil && ctx.Err() == nil {
			v.env.Logger.Warn("cluster: who is there cannot be seen, the last ones stay", "keys", v.filter, "error", err)
		}
		select {
		case <-again:
		default:
			if err == nil {
				continue // due for another look, without an outage
			}
		}
		wait.HoldOff(ctx, rand.N(v.env.Life/3)) // spreads the looks after an outage
	}
}

// look reads all entries, and then each change, until the next look is due.
func (v *View) look(ctx context.Context, again <-chan struct{}) error {
	before := v.env.NATS.LastError()
	w, err := kv.Watch(ctx, v.env.Nodes, kv.Timeout, v.filter)
	if err != nil {
		return kv.Permission(v.env.NATS, before, "."+v.filter, err)
	}
	defer kv.Stop(w)
	found := make(map[string]bool) // nil once all present entries have arrived
	var looks wait.Looks
	overdue, looked := time.NewTicker(v.env.Life/4), time.Now()
	defer overdue.Stop()
	end := time.NewTimer(v.untilNextLook())
	defer end.Stop()
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return kv.ErrNotWatched
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
			// a late tick removes no member: signs of life received meanwhile are still unread
			if !looks.Late(time.Since(looked), v.env.Life/4) {
				v.dropMissing(time.Now().Add(-v.env.Life))
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

// take processes an entry, or a deletion marker.
func (v *View) take(e jetstream.KeyValueEntry) {
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
		m, err := Decode(e)
		if err != nil {
			v.env.Logger.Warn("cluster: an entry is ignored", "error", err)
			return
		}
		v.members[key] = m
		delete(v.gone, key)
	}
}

func (v *View) removeLocked(key string, how Kind) {
	if _, ok := v.members[key]; !ok {
		return
	}
	delete(v.members, key)
	for other := range v.gone { // any one
		if len(v.gone) < mostGone {
			break
		}
		delete(v.gone, other)
	}
	v.gone[key] = how
}

// lookedFor records that these members were found, and all other members are missing. They may
// return at once: if JetStream has lost all data, all nodes announce themselves again.
func (v *View) lookedFor(found map[string]bool) {
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

// dropMissing removes the members that have been missing since before a time.
func (v *View) dropMissing(since time.Time) {
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

func (v *View) fail(err error) {
	if err == nil {
		return
	}
	v.mu.Lock()
	v.failure = err
	v.mu.Unlock()
	v.changed.Signal()
}

// Next returns a channel that is closed with the next change of the view.
func (v *View) Next() <-chan struct{} { return v.changed.Next() }

// Keys returns the filter of the view.
func (v *View) Keys() string { return v.filter }

// Members returns the members in the order of their ids, and whether there was a first look.
func (v *View) Members() (members []Member, looked bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	members = slices.Collect(maps.Values(v.members))
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, v.looked
}

// howGone returns the kind of a member's removal.
func (v *View) howGone(key string) Kind {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind, ok := v.gone[key]; ok {
		return kind
	}
	return Lost
}

// Err returns the reason why the view is not current, or nil.
func (v *View) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failure
}

// Views are the views in use, so that several users of a name share one watch.
type Views struct {
	env Env             // fixed, as ctx is
	ctx context.Context // ends all views

	running sync.WaitGroup // follow views; incremented with mu held, never once closed

	mu     sync.Mutex
	all    map[string]*viewUse // by filter, created on first use; guarded by mu, as closed
	closed bool                // no more views are followed
}

// viewUse is a view with its number of users.
type viewUse struct {
	view  *View // fixed, as all up to over
	stop  context.CancelFunc
	over  chan struct{} // closed when it is no longer followed
	users int           // guarded by mu of views
}

// NewViews returns an empty set of views. All of them end with ctx.
func NewViews(ctx context.Context, env Env) *Views { return &Views{ctx: ctx, env: env} }

// Close waits until no view is followed any more. Their context has to end first.
func (vs *Views) Close() {
	vs.mu.Lock()
	vs.closed = true
	vs.mu.Unlock()
	vs.running.Wait()
}

// Open returns the view for a filter of keys, such as "orders.*", and a function that releases it.
func (vs *Views) Open(filter string) (v *View, leave func()) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.all == nil {
		vs.all = make(map[string]*viewUse)
	}
	u := vs.all[filter]
	if u == nil {
		u = vs.beginLocked(newView(vs.env, filter))
		vs.all[filter] = u
	}
	u.users++
	return u.view, sync.OnceFunc(func() { vs.leave(filter, u) })
}

// beginLocked begins to follow a view.
func (vs *Views) beginLocked(v *View) *viewUse {
	u := &viewUse{view: v, over: make(chan struct{})}
	ctx, stop := context.WithCancel(vs.ctx)
	u.stop = stop
	follow := vs.running.Go
	if vs.closed {
		follow = func(f func()) { f() } // returns at once, as ctx has ended
	}
	follow(func() { // ends with the last user, or with ctx
		defer close(u.over)
		v.follow(ctx)
	})
	return u
}

func (vs *Views) leave(filter string, u *viewUse) {
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
