package kv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Watch watches the entries that a filter matches, until ctx ends. The caller has to stop the watch
// by Stop. The watch must begin within the given time, since package jetstream waits without a
// limit for NATS to return.
func Watch(ctx context.Context, kv jetstream.KeyValue, within time.Duration, filter string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(within, func() { cancel(ErrLate) })
	w, err := kv.Watch(ctx, filter, opts...)
	if !late.Stop() && err == nil {
		Stop(w)
		err = context.DeadlineExceeded
	}
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(context.Cause(ctx), ErrLate) {
			err = fmt.Errorf("%w: %w", ErrLate, err)
		}
		cancel(nil)
		return nil, err
	}
	return &cancelledWatch{w, func() { cancel(nil) }}, nil
}

// cancelledWatch is a watch that cancels its own context at its end.
type cancelledWatch struct {
	jetstream.KeyWatcher
	cancel func()
}

var (
	// ErrLate reports that a watch did not begin in time.
	ErrLate = errors.New("NATS has not answered in time, or is away")

	// ErrNotWatched reports that NATS has ended a watch.
	ErrNotWatched = errors.New("NATS has ended the watch of a bucket")
)

// Stop implements jetstream.KeyWatcher.
func (w *cancelledWatch) Stop() error {
	defer w.cancel()
	return w.KeyWatcher.Stop()
}

// Stop ends a watch. It drains the received updates, which would block the watch.
func Stop(w jetstream.KeyWatcher) {
	w.Stop()
	for range w.Updates() {
	}
}

// Snapshot returns the entries that a filter matches, and the deletion markers.
func Snapshot(ctx context.Context, kv jetstream.KeyValue, filter string, opts ...jetstream.WatchOpt) (all []jetstream.KeyValueEntry, err error) {
	w, err := Watch(ctx, kv, Timeout, filter, opts...)
	if err != nil {
		return nil, err
	}
	defer Stop(w)
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, ErrNotWatched
			case e == nil:
				return all, nil
			}
			all = append(all, e)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
