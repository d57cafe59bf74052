package natstest

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// FaultyKV is a bucket with write errors set by a test.
type FaultyKV struct {
	jetstream.KeyValue

	mu     sync.Mutex
	before error  // error of writes that do not arrive; guarded by mu, as all below
	after  error  // error of writes that arrive, but lose their answers
	during func() // called before the next write
}

// ErrLostAnswer is an error for [FaultyKV.Fail].
var ErrLostAnswer = errors.New("no answer")

// Update implements jetstream.KeyValue, with the errors of Fail.
func (k *FaultyKV) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	k.mu.Lock()
	before, after, during := k.before, k.after, k.during
	k.during = nil
	k.mu.Unlock()
	if during != nil {
		during()
	}
	if before != nil {
		return 0, before
	}
	revision, err := k.KeyValue.Update(ctx, key, value, revision)
	if err == nil && after != nil {
		return 0, after
	}
	return revision, err
}

// Fail sets the errors of later updates: before of those that do not arrive, after of those that
// arrive and lose their answers. nil is no error.
func (k *FaultyKV) Fail(before, after error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.before, k.after = before, after
}

// Once makes the next update call during first.
func (k *FaultyKV) Once(during func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.during = during
}
