package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Claim claims a key for this node. It fails with the error of [Config].Held if a node, this one or
// another, holds it; with ErrBadParams if the key is invalid; with ErrOverloaded if this node holds
// 65,536 keys; with ErrUnavailable if it has left; and otherwise if NATS does not answer within
// ctx, or within two seconds. A claim that loses its answer leaves an entry behind for TTL. For
// this node, the key is free nevertheless.
func (c *Claims) Claim(ctx context.Context, key string) (*Claim, error) {
	claim, err := c.take(ctx, key, false)
	return claim, c.exported(err)
}

// TakeOver is like [Claims.Claim], but also takes the key from another node that holds it, and
// notifies that node.
func (c *Claims) TakeOver(ctx context.Context, key string) (*Claim, error) {
	claim, err := c.take(ctx, key, true)
	return claim, c.exported(err)
}

func (c *Claims) take(ctx context.Context, key string, force bool) (*Claim, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.lease())
	defer cancel()
	done, err := c.reserve(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	before := c.cfg.NATS.LastError()
	for {
		claim, err := c.attempt(ctx, key, force)
		if claim != nil || err != nil {
			return claim, c.forbidden(before, key, err)
		}
		if !wait.HoldOff(ctx, rand.N(20*time.Millisecond)) {
			return nil, unanswered("claim", key, context.Cause(ctx))
		}
	}
}

// attempt makes one attempt to claim a key. It returns nil, nil if another node has changed the
// entry meanwhile, or if it took too long.
func (c *Claims) attempt(ctx context.Context, key string, force bool) (*Claim, error) {
	begin := c.cfg.Now()
	e, err := c.store.read(ctx, key)
	if err != nil {
		return nil, unanswered("claim", key, err)
	}
	// an entry of this instance without a claim remains of a claim that lost its answer
	if e.held && e.by != c.self && !force {
		return nil, &heldError{Held{key, e.by.node, e.epoch}}
	}
	at, err := c.store.position(ctx, c.cfg.TTL)
	if err != nil {
		return nil, unanswered("claim", key, err)
	}
	if at.last < e.revision || at.epoch() <= e.epoch {
		return nil, nil // from a deposed leader, or from before the bucket was created again
	}
	revision, err := c.store.write(ctx, key, c.self, at.epoch(), e.revision)
	switch {
	case kv.IsConflict(err):
		return nil, nil
	case err != nil:
		return nil, unanswered("claim", key, err)
	case revision <= at.last || c.since(begin) >= c.lease():
		return nil, nil // written to another bucket, or too late: see position.epoch
	}
	claim, ok := c.hold(key, at.epoch(), revision, begin)
	if !ok {
		c.store.remove(ctx, key, revision) // otherwise it expires
		return nil, errClaimsOver
	}
	c.tell(key, e)
	return claim, nil
}

// forbidden returns err, or the permission error of the NATS server since before, if the server has
// not answered.
func (c *Claims) forbidden(before error, key string, err error) error {
	why := kv.Permission(c.cfg.NATS, before, c.store.bucket.Bucket().Bucket(), err)
	if why == err || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("cluster: claim %q: %w", key, why)
}

// tell sends a hint to the node of an entry that its key was taken over. If the message is lost,
// the node finds out when it renews its claim.
func (c *Claims) tell(key string, had entry) {
	if !had.held || had.by == c.self || !kv.IsToken(had.by.node) {
		return
	}
	if err := c.cfg.NATS.Publish(c.cfg.Hints+"."+had.by.node, []byte(key)); err != nil {
		c.cfg.Logger.Debug("cluster: a node could not be notified of the takeover of its claim", "node", had.by.node, "key", key, "error", err)
	}
}

// Await waits until a key is free, and claims it: a lock, or an election. It retries while NATS
// does not answer. It ends with ctx, or with an error of [Claims.Claim] that waiting cannot
// resolve. One of several waiting nodes acquires the key, not necessarily the first.
func (c *Claims) Await(ctx context.Context, key string) (*Claim, error) {
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
		c.cfg.Logger.Debug("cluster: a key is waited for without NATS", "key", key, "error", err)
		wait.HoldOff(ctx, kv.Backoff(times))
	}
}

// awaitWatching is await with one watcher: it fails if the watcher cannot be created, or NATS does
// not answer.
func (c *Claims) awaitWatching(ctx context.Context, key string) (*Claim, error) {
	signs, err := c.watch(ctx, key)
	if err != nil {
		return nil, err
	}
	defer signs.stop()
	for {
		claim, err := c.take(ctx, key, false)
		var held *heldError
		if !errors.As(err, &held) {
			return claim, err
		}
		signs.silence.Reset(c.cfg.TTL / 15) // unless a sign of life arrives first
		if err := signs.free(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", err, c.exported(held))
		}
	}
}

// holderSigns receives the signs of life of a key's holder.
type holderSigns struct {
	of      *Claims // fixed, as watcher and back are
	watcher jetstream.KeyWatcher
	back    chan nats.Status // reconnected: the server may have lost the watcher

	silence *time.Timer // fires after a time without a sign; only for the waiting goroutine
	some    bool        // a sign has arrived; likewise
}

// watch begins to watch a key. It has the timeout of other requests.
func (c *Claims) watch(ctx context.Context, key string) (*holderSigns, error) {
	s := &holderSigns{of: c, silence: time.NewTimer(c.cfg.TTL)}
	s.back = c.cfg.NATS.StatusChanged(nats.CONNECTED) // subscribed before the watcher exists
	var err error
	if s.watcher, err = kv.Watch(ctx, c.store.bucket.Bucket(), kv.RequestTimeout, key); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *holderSigns) stop() {
	s.of.cfg.NATS.RemoveStatusListener(s.back)
	if s.watcher != nil {
		kv.Stop(s.watcher)
	}
	s.silence.Stop()
}

// free waits until the key may be free: its entry was deleted, or was not renewed for its whole
// life. The watcher does not report the expiry of an entry.
func (s *holderSigns) free(ctx context.Context) error {
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
func (s *holderSigns) isFree(e jetstream.KeyValueEntry) bool {
	switch {
	case e == nil:
		return !s.some
	case e.Operation() != jetstream.KeyValuePut:
		return true
	}
	s.some = true
	s.silence.Reset(s.of.cfg.TTL)
	return false
}

// maxHints bounds the queue of hints. Further hints are dropped: a renewal detects a takeover as
// well.
const maxHints = 1024

// listen subscribes to hints for this node, and begins to process them.
func (c *Claims) listen(ctx context.Context) error {
	c.hinted = make(chan string, maxHints)
	before := c.cfg.NATS.LastError()
	sub, err := c.cfg.NATS.Subscribe(c.cfg.Hints+"."+c.self.node, func(m *nats.Msg) {
		if len(m.Data) > maxKey {
			return
		}
		select {
		case c.hinted <- string(m.Data):
		default:
		}
	})
	if err == nil {
		err = kv.Subscribed(ctx, c.cfg.NATS, before, sub.Subject)
	}
	if err != nil {
		return err
	}
	c.running.Go(func() { c.heed(sub) }) // ends with c.ctx
	return nil
}

// heed processes hints, one after the other. Any client may send a hint, so it only causes a read
// of the entry of a key that is held here.
func (c *Claims) heed(sub *nats.Subscription) {
	defer sub.Unsubscribe()
	for {
		select {
		case <-c.ctx.Done():
			return
		case key := <-c.hinted:
			if claim := c.of(key); claim != nil {
				claim.verify()
			}
		}
	}
}
