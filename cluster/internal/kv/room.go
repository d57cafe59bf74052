package kv

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Room reports whether a bucket has room for one more call. It reads the state of the bucket, for
// all calls together, at most once a second. The bucket itself accepts a quarter more, so that
// running calls have room for their answers.
type Room struct {
	calls, bytes int64 // fixed, as look is
	look         func(ctx context.Context) (*jetstream.StreamInfo, error)

	mu      sync.Mutex
	looking bool      // a read is running; guarded by mu, as all below
	tried   time.Time // end of the last read
	at      time.Time // start of the last successful read
	clock   time.Time // JetStream's clock at that time
	used    jetstream.StreamState
	since   uint64 // calls claimed on this node since
}

// NewRoom returns the room of a bucket up to a number of calls and of bytes. look reads the state
// of its stream.
func NewRoom(calls, bytes int64, look func(ctx context.Context) (*jetstream.StreamInfo, error)) *Room {
	return &Room{calls: calls, bytes: bytes, look: look}
}

// HasRoom reports whether there is room for one more call. If JetStream does not answer, it uses
// the last known state: the write of the call will fail in any case.
func (r *Room) HasRoom(ctx context.Context) bool {
	if r.isDue() {
		begin := time.Now()
		info, err := r.look(ctx)
		r.note(info, err, begin)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(r.used.Msgs+r.since) < r.calls && int64(r.used.Bytes) < r.bytes
}

// Take counts a call that was written since the state was read.
func (r *Room) Take() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since++
}

// isDue reports whether the caller has to read the state. At most one caller reads at a time.
func (r *Room) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking || !r.tried.IsZero() && time.Since(r.tried) < time.Second {
		return false
	}
	r.looking = true
	return true
}

// note records the result of a read that began at begin.
func (r *Room) note(info *jetstream.StreamInfo, err error, begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking, r.tried = false, time.Now()
	if err == nil {
		r.at, r.clock, r.used, r.since = begin, info.TimeStamp, info.State, 0
	}
}

// Age returns the age of an entry by the clock of JetStream alone, or 0 if that is unknown.
func (r *Room) Age(written time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.IsZero() {
		return 0
	}
	return r.clock.Add(time.Since(r.at)).Sub(written)
}
