package presence

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Reaper removes the nodes without signs of life. One node at a time does this for all, so that no
// other node has to receive the signs: the one that holds the reaper entry in the bucket of the
// signs, which is free again when that node goes.
type Reaper struct { // fixed, except for the last two
	env Env
	id  string

	held   uint64    // revision of the entry while this node holds it; else 0
	stayed time.Time // time of its last write
}

// reaperKey is the key of the reaper entry. Keys of nodes contain a dot.
const reaperKey = "reaper"

// tidyEvery is the interval of checks of all entries: for entries of nodes that ended before their
// first sign of life, and for deletion markers, which would fill the bucket otherwise.
const tidyEvery = time.Minute

// NewReaper returns the reaper of the node with an id.
func NewReaper(env Env, id string) *Reaper { return &Reaper{env: env, id: id} }

// Run does the work whenever no other node does, until ctx ends. If the NATS server does not allow
// it, Run leaves it to other nodes: a reaper needs write access to the entries of all nodes.
func (r *Reaper) Run(ctx context.Context) {
	pause := r.env.Beat
	for {
		if !wait.HoldOff(ctx, pause-rand.N(pause/5)) {
			return
		}
		if pause = r.env.Life; r.take(ctx) {
			if err := r.reap(ctx); err != nil && ctx.Err() == nil {
				r.env.Logger.Warn("cluster: lost nodes cannot be found", "error", err)
			}
			r.release()
		} else if kv.Denied(r.env.NATS, kv.EntrySubject(r.env.Alive, reaperKey)) {
			r.env.Logger.Info("cluster: this node is not allowed to look for lost ones, other nodes have to")
			return
		}
	}
}

// take reports whether this node has become the reaper.
func (r *Reaper) take(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	held, err := r.env.Alive.Create(ctx, reaperKey, []byte(r.id))
	r.held, r.stayed = held, time.Now()
	return err == nil
}

// stay returns nil if this node still is the reaper.
func (r *Reaper) stay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	held, err := r.env.Alive.Update(ctx, reaperKey, []byte(r.id), r.held)
	if err == nil {
		r.held, r.stayed = held, time.Now()
	}
	return err
}

func (r *Reaper) release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r.env.Alive.Delete(ctx, reaperKey, jetstream.LastRevision(r.held))
}

// reap removes lost nodes until ctx ends, or another node has become the reaper.
func (r *Reaper) reap(ctx context.Context) error {
	w, err := kv.Watch(ctx, r.env.Alive, kv.Timeout, "*.*", jetstream.MetaOnly())
	if err != nil {
		return err
	}
	defer kv.Stop(w)
	heard := make(map[string]time.Time) // time of the last sign of each node, by key
	if _, err := r.list(ctx, heard); err != nil {
		return err
	}
	beat, check, tidy := time.NewTicker(r.env.Beat), time.NewTicker(r.env.Life/8), time.NewTicker(tidyEvery)
	for _, t := range []*time.Ticker{beat, check, tidy} {
		defer t.Stop()
	}
	for err == nil {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return kv.ErrNotWatched
			}
			hear(heard, e)
		case <-check.C:
			err = r.check(ctx, heard)
		case <-beat.C:
			err = r.stay(ctx)
		case <-tidy.C:
			err = r.tidy(ctx, heard)
		case <-ctx.Done():
			return nil
		}
	}
	return err
}

// hear records a sign of life, or that a node has left by itself. It ignores nil.
func hear(heard map[string]time.Time, e jetstream.KeyValueEntry) {
	switch {
	case e == nil:
	case e.Operation() == jetstream.KeyValuePut:
		heard[e.Key()] = time.Now()
	default:
		delete(heard, e.Key())
	}
}

// list adds nodes without any sign yet, as if there had been one now, and returns all entries.
func (r *Reaper) list(ctx context.Context, heard map[string]time.Time) ([]jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	all, err := kv.Snapshot(ctx, r.env.Nodes, "*.*", jetstream.MetaOnly())
	for _, e := range all {
		if _, ok := heard[e.Key()]; !ok && e.Operation() == jetstream.KeyValuePut {
			heard[e.Key()] = time.Now()
		}
	}
	return all, err
}

// tidy is list, and removes old deletion markers.
func (r *Reaper) tidy(ctx context.Context, heard map[string]time.Time) error {
	all, err := r.list(ctx, heard)
	if err != nil {
		return err
	}
	if err := r.removeMarks(ctx, all); err != nil && ctx.Err() == nil {
		r.env.Logger.Warn("cluster: the marks of nodes that have gone cannot be removed", "error", err)
	}
	return r.stay(ctx)
}

// mostMarks is the maximum number of markers removed at a time, each by a request.
const mostMarks = 500

// removeMarks removes old deletion markers. It is bounded in time, so that this node stays the
// reaper.
func (r *Reaper) removeMarks(ctx context.Context, all []jetstream.KeyValueEntry) error {
	all = slices.DeleteFunc(all, func(e jetstream.KeyValueEntry) bool {
		return e.Operation() == jetstream.KeyValuePut || time.Since(e.Created()) < tidyEvery
	})
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	stream, err := r.env.JetStream.Stream(ctx, "KV_"+r.env.Nodes.Bucket())
	for _, e := range all[:min(len(all), mostMarks)] {
		if err != nil {
			break
		}
		// keeps an entry that the node has written since, if it is back
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(kv.EntrySubject(r.env.Nodes, e.Key())), jetstream.WithPurgeSequence(e.Revision()+1))
	}
	return err
}

// check removes the nodes without a sign for too long.
func (r *Reaper) check(ctx context.Context, heard map[string]time.Time) error {
	for key, at := range heard {
		if time.Since(at) < r.env.Life {
			continue
		}
		lost, err := r.remove(ctx, key)
		if err == nil && time.Since(r.stayed) > r.env.Beat { // for the case of many lost nodes
			err = r.stay(ctx)
		}
		if err != nil {
			return err
		}
		if !lost {
			heard[key] = time.Now() // a sign has arrived at this moment
			continue
		}
		delete(heard, key)
	}
	return nil
}

// remove removes a node, unless there is a sign of life.
func (r *Reaper) remove(ctx context.Context, key string) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	e, err := r.env.Nodes.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// in this order: a node that returns meanwhile writes another revision
	if _, err := r.env.Alive.Get(ctx, key); !errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, err
	}
	err = r.env.Nodes.Delete(ctx, key, jetstream.LastRevision(e.Revision()))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return false, nil
	}
	r.env.Logger.Info("cluster: a node gives no sign of life", "node", key)
	return true, err
}
