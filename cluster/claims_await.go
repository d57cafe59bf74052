package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// await waits until nobody holds a key, and claims it: a lock, or an election. It goes on while
// NATS does not answer, and ends with ctx, or with an error that waiting does not mend, as claim
// has them. Of several nodes that wait one gets the key, and not necessarily the first.
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
		wait.HoldOff(ctx, holdOffTime(times))
	}
}

// awaitWatching is await with one watcher: it fails when that cannot be made, or NATS does not
// answer.
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
		signs.silence.Reset(c.ttl / 15) // unless there is a sign of life before
		if err := signs.free(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", err, held)
		}
	}
}

// claimSigns are the signs of life that the holder of a key gives.
type claimSigns struct {
	of      *claims // these are fixed
	watcher jetstream.KeyWatcher
	back    chan nats.Status // the connection came back, and the watcher may have been forgotten

	silence *time.Timer // goes off when it has given none for long enough; of the one who waits
	some    bool        // there was one; likewise
}

// watch begins to watch a key. Without an answer of NATS it gives up as requests do.
func (c *claims) watch(ctx context.Context, key string) (*claimSigns, error) {
	s := &claimSigns{of: c, silence: time.NewTimer(c.ttl)}
	s.back = c.nc.StatusChanged(nats.CONNECTED) // before the watcher is there
	var err error
	if s.watcher, err = watch(ctx, c.store.kv, natsPatience, key); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *claimSigns) stop() {
	s.of.nc.RemoveStatusListener(s.back)
	if s.watcher != nil {
		stopWatch(s.watcher)
	}
	s.silence.Stop()
}

// free waits until the key may be free: its entry was deleted, or was not written anew for as long
// as it takes to run out, which the watcher is not told.
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

// isFree takes a sign. The first that the watcher gives is the entry that was there, if any, and
// then nil.
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
