package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// durableRoom reports whether there is room for one more call. It reads the state of the bucket,
// for all calls together, at most once a second. The bucket itself accepts a quarter more, so that
// running calls have room for their answers.
type durableRoom struct {
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

// check returns an error if there is no room for a call. If JetStream does not answer, it uses the
// last known state: the claim will fail in any case.
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

// take counts a claimed call.
func (r *durableRoom) take() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since++
}

// isDue reports whether the caller has to read the state. At most one caller reads at a time.
func (r *durableRoom) isDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looking || !r.tried.IsZero() && time.Since(r.tried) < time.Second {
		return false
	}
	r.looking = true
	return true
}

// note records the result of a read that began at begin.
func (r *durableRoom) note(info *jetstream.StreamInfo, err error, begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking, r.tried = false, time.Now()
	if err == nil {
		r.at, r.clock, r.used, r.since = begin, info.TimeStamp, info.State, 0
	}
}

// age returns the age of an entry by the clock of JetStream alone, or 0 if that is unknown.
func (r *durableRoom) age(written time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock.IsZero() {
		return 0
	}
	return r.clock.Add(time.Since(r.at)).Sub(written)
}

// look reads the state of the bucket from the leader of the stream, and creates the bucket again if
// it is gone.
func (d *durableRegistry) look(ctx context.Context) (*jetstream.StreamInfo, error) {
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
