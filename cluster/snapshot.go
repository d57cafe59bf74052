package cluster

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// snapshot returns the entries that a filter matches, without those that were deleted.
func snapshot(ctx context.Context, kv jetstream.KeyValue, filter string, opts ...jetstream.WatchOpt) (all []jetstream.KeyValueEntry, err error) {
	w, err := kv.Watch(ctx, filter, append(opts, jetstream.IgnoreDeletes())...)
	if err != nil {
		return nil, err
	}
	defer stopWatch(w)
	for {
		select {
		case e, ok := <-w.Updates():
			if e == nil && ok {
				return all, nil
			}
			if !ok {
				return nil, errNotWatched
			}
			all = append(all, e)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var errNotWatched = errors.New("NATS has ended the watch of a bucket")

// stopWatch ends a watch. What has come already is in its way, and is taken.
func stopWatch(w jetstream.KeyWatcher) {
	w.Stop()
	for range w.Updates() {
	}
}
