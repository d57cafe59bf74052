package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// reaper removes the nodes without signs of life. One node at a time does this for all, so that no
// other node has to receive the signs: the one that holds the reaper entry in the bucket of the
// signs, which is free again when that node goes.
type reaper struct { // fixed, except for the last two
	nc   *nats.Conn
	b    buckets
	id   string
	life time.Duration
	beat time.Duration
	log  *slog.Logger

	held   uint64    // revision of the entry while this node holds it; else 0
	stayed time.Time // time of its last write
}

// reaperKey is the key of the reaper entry. Keys of nodes contain a dot.
const reaperKey = "reaper"

// tidyEvery is the interval of checks of all entries: for entries of nodes that ended before their
// first sign of life, and for deletion markers, which would fill the bucket otherwise.
const tidyEvery = time.Minute

func newReaper(c *Cluster) *reaper {
	return &reaper{nc: c.nc, b: c.buckets, id: c.cfg.ID, life: c.cfg.times.life, beat: c.cfg.times.beat, log: c.node.Logger()}
}

// run does the work whenever no other node does, until ctx ends. If the NATS server does not allow
// it, run leaves it to other nodes: a reaper needs write access to the entries of all nodes.
func (r *reaper) run(ctx context.Context) {
	pause := r.beat
	for {
		if !wait.HoldOff(ctx, pause-rand.N(pause/5)) {
			return
		}
		if pause = r.life; r.take(ctx) {
			if err := r.reap(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("cluster: lost nodes cannot be found", "error", err)
			}
			r.release()
		} else if kv.Denied(r.nc, kv.EntrySubject(r.b.alive, reaperKey)) {
			r.log.Info("cluster: this node is not allowed to look for lost ones, other nodes have to")
			return
		}
	}
}

// take reports whether this node has become the reaper.
func (r *reaper) take(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	held, err := r.b.alive.Create(ctx, reaperKey, []byte(r.id))
	r.held, r.stayed = held, time.Now()
	return err == nil
}

// stay returns nil if this node still is the reaper.
func (r *reaper) stay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	held, err := r.b.alive.Update(ctx, reaperKey, []byte(r.id), r.held)
	if err == nil {
		r.held, r.stayed = held, time.Now()
	}
	return err
}

func (r *reaper) release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r.b.alive.Delete(ctx, reaperKey, jetstream.LastRevision(r.held))
}

// reap removes lost nodes until ctx ends, or another node has become the reaper.
func (r *reaper) reap(ctx context.Context) error {
	w, err := kv.Watch(ctx, r.b.alive, kv.Timeout, "*.*", jetstream.MetaOnly())
	if err != nil {
		return err
	}
	defer kv.Stop(w)
	heard := make(map[string]time.Time) // time of the last sign of each node, by key
	if _, err := r.list(ctx, heard); err != nil {
		return err
	}
	beat, check, tidy := time.NewTicker(r.beat), time.NewTicker(r.life/8), time.NewTicker(tidyEvery)
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
func (r *reaper) list(ctx context.Context, heard map[string]time.Time) ([]jetstream.KeyValueEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	all, err := kv.Snapshot(ctx, r.b.nodes, "*.*", jetstream.MetaOnly())
	for _, e := range all {
		if _, ok := heard[e.Key()]; !ok && e.Operation() == jetstream.KeyValuePut {
			heard[e.Key()] = time.Now()
		}
	}
	return all, err
}

// tidy is list, and removes old deletion markers.
func (r *reaper) tidy(ctx context.Context, heard map[string]time.Time) error {
	all, err := r.list(ctx, heard)
	if err != nil {
		return err
	}
	if err := r.removeMarks(ctx, all); err != nil && ctx.Err() == nil {
		r.log.Warn("cluster: the marks of nodes that have gone cannot be removed", "error", err)
	}
	return r.stay(ctx)
}

// mostMarks is the maximum number of markers removed at a time, each by a request.
const mostMarks = 500

// removeMarks removes old deletion markers. It is bounded in time, so that this node stays the
// reaper.
func (r *reaper) removeMarks(ctx context.Context, all []jetstream.KeyValueEntry) error {
	all = slices.DeleteFunc(all, func(e jetstream.KeyValueEntry) bool {
		return e.Operation() == jetstream.KeyValuePut || time.Since(e.Created()) < tidyEvery
	})
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	stream, err := r.b.js.Stream(ctx, "KV_"+r.b.nodes.Bucket())
	for _, e := range all[:min(len(all), mostMarks)] {
		if err != nil {
			break
		}
		// keeps an entry that the node has written since, if it is back
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(kv.EntrySubject(r.b.nodes, e.Key())), jetstream.WithPurgeSequence(e.Revision()+1))
	}
	return err
}

// check removes the nodes without a sign for too long.
func (r *reaper) check(ctx context.Context, heard map[string]time.Time) error {
	for key, at := range heard {
		if time.Since(at) < r.life {
			continue
		}
		lost, err := r.remove(ctx, key)
		if err == nil && time.Since(r.stayed) > r.beat { // for the case of many lost nodes
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
func (r *reaper) remove(ctx context.Context, key string) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, kv.Timeout)
	defer cancel()
	e, err := r.b.nodes.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// in this order: a node that returns meanwhile writes another revision
	if _, err := r.b.alive.Get(ctx, key); !errors.Is(err, jetstream.ErrKeyNotFound) {
		return false, err
	}
	err = r.b.nodes.Delete(ctx, key, jetstream.LastRevision(e.Revision()))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return false, nil
	}
	r.log.Info("cluster: a node gives no sign of life", "node", key)
	return true, err
}
