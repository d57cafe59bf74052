package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// durableRoom says whether there is room for one more call. It looks at the bucket, for all calls
// together, at most once a second. The bucket itself takes a quarter more, so that those that run
// find room for their answers.
type durableRoom struct {
	calls, bytes int64 // these are fixed
	look         func(ctx context.Context) (*jetstream.StreamInfo, error)

	mu      sync.Mutex
	looking bool      // guarded by mu, as all below
	tried   time.Time // when somebody has looked last
	at      time.Time // when that has succeeded last
	clock   time.Time // of JetStream, then
	used    jetstream.StreamState
	since   uint64 // calls that were claimed here since
}

// check returns why there is no room for a call, or nil. If JetStream does not
// answer it goes by what it has known last: that the call cannot be claimed it finds out anyway.
func (r *durableRoom) check(ctx context.Context) error {
	if r.isDue() {
		begin := time.Now()
		info, err := r.look(ctx)
		r.note(info, err, begin)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if int64(r.used.Msgs+r.since) >= r.calls || int64(r.used.Bytes) >= r.bytes {
		return errDurableFull
	}
	return nil
}

// take counts a call that was claimed.
func (r *durableRoom) take() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since++
}

// isDue reports whether the caller is to look, which nobody else does then.
func (r *durableRoom) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking || !r.tried.IsZero() && time.Since(r.tried) < time.Second {
		return false
	}
	r.looking = true
	return true
}

// note takes what somebody has seen who began to look then.
func (r *durableRoom) note(info *jetstream.StreamInfo, err error, begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking, r.tried = false, time.Now()
	if err == nil {
		r.at, r.clock, r.used, r.since = begin, info.TimeStamp, info.State, 0
	}
}

// age returns how old an entry is by the clock of JetStream alone, as far as that is known.
func (r *durableRoom) age(written time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.IsZero() {
		return 0
	}
	return r.clock.Add(time.Since(r.at)).Sub(written)
}

// look asks the leader of the stream what is in the bucket, and makes it again if it is gone.
func (d *durables) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	if !d.nc.IsConnected() {
		return nil, nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, natsPatience)
	defer cancel()
	s, err := d.js.Stream(ctx, d.store.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		d.log.Warn("cluster: the bucket of the durable calls is gone, and with it what it remembered", "bucket", d.bucket)
		if _, err = d.open(ctx, false); err == nil {
			s, err = d.js.Stream(ctx, d.store.stream)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
