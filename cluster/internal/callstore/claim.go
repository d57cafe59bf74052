package callstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// claim replaces e by a record that the call runs here. It returns a run, or the entry that another
// node has written meanwhile, or an error if neither is known.
//
// A write without an answer is repeated unchanged: of two writes that expect the same revision at
// most one succeeds, so the entry is that of this run in either case.
func (d *Registry) claim(ctx context.Context, call call, e entry) (*run, entry, error) {
	if !d.nc.IsConnected() { // the connection would buffer the write, and send it after a reconnect
		return nil, e, unavailable(nats.ErrConnectionReconnecting)
	}
	ctx, cancel := context.WithTimeout(ctx, d.plan.Lease/3)
	defer cancel()
	a := &attempt{run: d.newRun(call), place: e}
	for times := 0; !a.try(ctx); times++ {
		if !wait.HoldOff(ctx, kv.Backoff(times)) {
			a.err = unavailable(cmp.Or(a.err, context.Cause(ctx)))
			break
		}
	}
	switch {
	case a.held:
		d.count(a)
		return a.run, e, nil
	case a.err != nil && a.unsure:
		d.takeBack(a.run)
	}
	return nil, a.found, a.err
}

// count counts a claimed call, unless the bucket had an entry of it: a call that is rejected each
// time leaves only one deletion marker.
func (d *Registry) count(a *attempt) {
	if a.place.revision == 0 {
		d.room.Take()
		d.shares.take(a.run.call.caller, 1, recordSize)
	}
}

// recordSize is the approximate size of a record in bytes, without its answer.
const recordSize = 400

func (d *Registry) newRun(call call) *run {
	return &run{Registry: d, call: call, record: &record{
		Version: recordVersion, State: stateRuns, Node: d.cfg.Node, Instance: d.cfg.Instance, Run: rand.Text(),
		Function: call.function, Digest: call.digest, Codec: call.codec, Lease: d.plan.Lease.Milliseconds(),
	}}
}

// attempt is an attempt to claim a call.
type attempt struct {
	run    *run
	place  entry // the entry to replace
	held   bool  // the attempt has succeeded
	found  entry // an entry written by another node
	err    error // the error of the last try
	unsure bool  // a write may still succeed
}

// try makes one write, and reports whether the attempt is over.
func (a *attempt) try(ctx context.Context) (over bool) {
	revision, err := a.run.write(ctx, a.run.record, a.place.revision)
	switch a.err = nil; {
	case err == nil:
		a.held, a.run.revision = true, revision
		return true
	case kv.IsConflict(err):
		return a.look(ctx)
	case kv.IsFull(err):
		a.err = errDurableFull
		return true
	case kv.IsRejected(err):
		a.err = unavailable(err)
		return true
	}
	a.err, a.unsure = err, true
	return false
}

// look reads the present entry after a conflict.
func (a *attempt) look(ctx context.Context) (over bool) {
	e, err := a.run.bucket.read(ctx, a.run.call.name)
	switch {
	case err != nil:
		a.err = err
		return false
	case e.isOf(a.run.record.Run):
		a.held, a.run.revision = true, e.revision
		return true
	case e.there && e.revision != a.place.revision:
		a.found = e
		return true
	}
	a.place.revision = e.revision // of a deletion marker, or a write is in flight at the leader
	return false
}

// takeBack removes a claim that may still have been written, of a call that does not run, so that
// no repetition waits for its lease. If too many are being removed, or JetStream does not answer
// for a lease, repetitions have to wait.
func (d *Registry) takeBack(r *run) {
	select {
	case d.takeBacks <- struct{}{}:
	default:
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		<-d.takeBacks
		return
	}
	d.takingBack.Go(func() { // ends after a lease, or with the context of the node
		defer func() { <-d.takeBacks }()
		ctx, cancel := context.WithTimeout(d.ctx, d.plan.Lease)
		defer cancel()
		for times := 0; !r.isGone(ctx) && wait.HoldOff(ctx, kv.Backoff(times)); times++ {
		}
	})
}

// isGone removes the record of the run if it is there, and reports whether it can no longer appear:
// as long as there is no record, the write may be in flight.
func (r *run) isGone(ctx context.Context) bool {
	e, err := r.bucket.read(ctx, r.call.name)
	switch {
	case err != nil || !e.there:
		return false
	case !e.isOf(r.record.Run):
		return true
	}
	err = r.bucket.Remove(ctx, r.call.name, e.revision)
	return err == nil || errors.Is(err, nats.ErrConnectionClosed)
}
