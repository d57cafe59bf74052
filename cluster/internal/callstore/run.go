package callstore

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// run is a call that this node has claimed and runs.
type run struct {
	*Registry
	call   call    // fixed
	record *record // its record while the call runs; fixed

	// used by the goroutine that keeps the lease while the call runs, and otherwise by that of the
	// call
	revision uint64
	written  time.Time // start of the last successful write
}

// write replaces the entry with the revision by rec, and records the start of the lease.
func (r *run) write(ctx context.Context, rec *record, revision uint64) (uint64, error) {
	begin := time.Now()
	revision, err := r.bucket.write(ctx, r.call.name, rec, revision)
	if err == nil || r.written.IsZero() {
		r.written = begin
	}
	return revision, err
}

// carryOut runs the call, and writes its outcome before returning it.
func (r *run) carryOut(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	stop := r.keep()
	defer stop() // if next does not return
	err := next(ctx, c)
	stop()
	if notRun(err) && isUnrun(c) {
		_, failed := r.settle(nil)
		r.report(failed)
		return err
	}
	result, err := resultOf(c, err)
	rec := r.outcome(result, err)
	r.shares.take(r.call.caller, 0, int64(len(rec.body)+len(rec.Message)))
	taken, failed := r.settle(rec)
	if taken.there {
		return r.superseded(taken, c)
	}
	r.report(failed)
	return err
}

// isUnrun reports whether no part of the call has run: an error alone may be that of another call.
func isUnrun(c *asterisque.Call) bool { return notRun(c.Refuse(codec.ErrUnavailable)) }

// resultOf returns the result of a call that has ended with err.
func resultOf(c *asterisque.Call, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return c.RawResult()
}

// outcome returns the record of a call that has run.
func (r *run) outcome(result []byte, err error) *record {
	if r.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return r.record.with(stateLost) // canceled by this node
	}
	return r.record.answered(result, codec.AbortOf(err))
}

// superseded returns the outcome of a call that another node has taken for lost and run again. It
// is the answer of that node, since a call has only one.
func (r *run) superseded(by entry, c *asterisque.Call) error {
	if by.unread == nil && by.isSame(r.call) && by.record.State == stateAnswered {
		return by.record.give(c)
	}
	c.ForgetAnswer()
	return errDurableTaken
}

// report logs that an outcome was not recorded.
func (r *run) report(err error) {
	if err != nil {
		r.log.Warn("cluster: the answer to a durable call is not remembered; a repetition gets the error that it may have run",
			"function", r.call.function, "error", err)
	}
}

// keep renews the lease until stop has returned. stop may be called more than once.
func (r *run) keep() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { // ends with stop
		defer close(over)
		for again := true; again && wait.HoldOff(ctx, r.plan.Lease/3); {
			again = r.renew(ctx)
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

// renew writes the record again, and reports whether to continue.
func (r *run) renew(ctx context.Context) (again bool) {
	for {
		revision, err := r.write(ctx, r.record, r.revision)
		if err == nil {
			r.revision = revision
			return true
		}
		if !kv.IsConflict(err) {
			return true
		}
		e, err := r.bucket.read(ctx, r.call.name)
		switch {
		case err != nil || e.revision == r.revision:
			return true
		case e.there && !e.isOf(r.record.Run):
			return false
		}
		r.revision = e.revision // its answer was lost, or the run was marked as lost by mistake
	}
}

// settle replaces the record of the run by rec, or removes it if rec is nil. It retries until the
// lease expires. If another node has taken the call over, it returns that node's entry.
func (r *run) settle(rec *record) (taken entry, err error) {
	until := r.written.Add(r.plan.Lease)
	if least := time.Now().Add(kv.RequestTimeout); until.Before(least) {
		until = least
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	for times := 0; ; times++ {
		switch err = r.put(ctx, rec); {
		case err == nil, errors.Is(err, nats.ErrConnectionClosed):
			return taken, err
		case kv.IsConflict(err):
			e, over := r.meet(ctx, rec)
			if over {
				return e, nil
			}
		case kv.IsTooLarge(err) && rec != nil:
			rec = r.record.with(stateUnkept) // there is room for that record
		}
		if r.ctx.Err() != nil || !wait.HoldOff(ctx, kv.Backoff(times)) {
			return taken, err
		}
	}
}

// put makes one attempt.
func (r *run) put(ctx context.Context, rec *record) error {
	if rec == nil {
		return r.bucket.Remove(ctx, r.call.name, r.revision)
	}
	_, err := r.bucket.write(ctx, r.call.name, rec, r.revision)
	return err
}

// meet reads the present entry after a conflict. It reports whether settle is done: the entry is
// the outcome of the run, after a lost answer, or another node has taken the call over.
func (r *run) meet(ctx context.Context, rec *record) (taken entry, over bool) {
	e, err := r.bucket.read(ctx, r.call.name)
	switch {
	case err != nil:
		return taken, false
	case e.there && !e.isOf(r.record.Run):
		return e, true
	case rec == nil && !e.there, rec != nil && e.isEnd(rec):
		return taken, true
	}
	r.revision = e.revision
	return taken, false
}
