package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// await waits until a key is free, and claims it: a lock, or an election. It retries while NATS
// does not answer. It ends with ctx, or with an error of claim that waiting cannot resolve. One of
// several waiting nodes acquires the key, not necessarily the first.
func (c *claims) await(ctx context.Context, key string) (*Claim, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	for times := 0; ; times++ {
		claim, err := c.awaitWatching(ctx, key)
		var final *asterisque.Abort
		switch {
		case err == nil || errors.As(err, &final):
			return claim, err
		case ctx.Err() != nil:
			return nil, fmt.Errorf("cluster: waiting for the key %q: %w (%w)", key, context.Cause(ctx), err)
		}
		c.log.Debug("cluster: a key is waited for without NATS", "key", key, "error", err)
		wait.HoldOff(ctx, kv.Backoff(times))
	}
}

// awaitWatching is await with one watcher: it fails if the watcher cannot be created, or NATS does
// not answer.
func (c *claims) awaitWatching(ctx context.Context, key string) (*Claim, error) {
	signs, err := c.watch(ctx, key)
	if err != nil {
		return nil, err
	}
	defer signs.stop()
	for {
		claim, err := c.claim(ctx, key)
		var held *HeldError
		if !errors.As(err, &held) {
			return claim, err
		}
		signs.silence.Reset(c.ttl / 15) // unless a sign of life arrives first
		if err := signs.free(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", err, held)
		}
	}
}

// claimSigns receives the signs of life of a key's holder.
type claimSigns struct {
	of      *claims // fixed, as watcher and back are
	watcher jetstream.KeyWatcher
	back    chan nats.Status // reconnected: the server may have lost the watcher

	silence *time.Timer // fires after a time without a sign; only for the waiting goroutine
	some    bool        // a sign has arrived; likewise
}

// watch begins to watch a key. It has the timeout of other requests.
func (c *claims) watch(ctx context.Context, key string) (*claimSigns, error) {
	s := &claimSigns{of: c, silence: time.NewTimer(c.ttl)}
	s.back = c.nc.StatusChanged(nats.CONNECTED) // subscribed before the watcher exists
	var err error
	if s.watcher, err = kv.Watch(ctx, c.store.bucket.Bucket(), kv.RequestTimeout, key); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *claimSigns) stop() {
	s.of.nc.RemoveStatusListener(s.back)
	if s.watcher != nil {
		kv.Stop(s.watcher)
	}
	s.silence.Stop()
}

// free waits until the key may be free: its entry was deleted, or was not renewed for its whole
// life. The watcher does not report the expiry of an entry.
func (s *claimSigns) free(ctx context.Context) error {
	for {
		select {
		case e, ok := <-s.watcher.Updates():
			if !ok {
				return errors.New("the watcher has ended")
			}
			if s.isFree(e) {
				return nil
			}
		case <-s.back:
			return errors.New("the connection was lost")
		case <-s.silence.C:
			return nil
		case <-s.of.ctx.Done():
			return errClaimsOver
		case <-ctx.Done():
			return errStillHeld
		}
	}
}

var errStillHeld = errors.New("it is still held")

// isFree processes a sign. The watcher first sends the present entry, if any, and then nil.
func (s *claimSigns) isFree(e jetstream.KeyValueEntry) bool {
	switch {
	case e == nil:
		return !s.some
	case e.Operation() != jetstream.KeyValuePut:
		return true
	}
	s.some = true
	s.silence.Reset(s.of.ttl)
	return false
}
