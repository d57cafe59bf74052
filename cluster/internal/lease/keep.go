package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// keep renews the claim until it ends.
func (c *Claim) keep() {
	defer close(c.stopped)
	defer c.claims.forget(c)
	next := time.NewTimer(c.interval())
	defer next.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-next.C:
		}
		if c.Err() != nil {
			return
		}
		next.Reset(min(c.renew(), max(c.left(), 0)))
	}
}

// interval returns a third of TTL, or up to a fifteenth less at random, so that claims of the same
// time are not renewed at the same time for ever.
func (c *Claim) interval() time.Duration {
	return c.claims.cfg.TTL/3 - rand.N(c.claims.cfg.TTL/15+1)
}

// soon is the delay before the retry of a failed renewal.
func (c *Claim) soon() time.Duration { return c.claims.cfg.TTL / 15 }

// renew writes the entry again, and returns the delay until the next renewal.
func (c *Claim) renew() (again time.Duration) {
	begin := c.claims.cfg.Now()
	revision, _, _ := c.state()
	ctx, cancel := context.WithTimeout(c.ctx, c.claims.cfg.TTL/5)
	defer cancel()
	next, err := c.claims.store.write(ctx, c.key, c.claims.self, c.epoch, revision)
	switch {
	case err == nil:
		c.note(next, begin)
		return c.interval()
	case kv.IsConflict(err):
		return c.lookAt(revision)
	default:
		c.fail(err)
		return c.soon()
	}
}

// lookAt reads the present entry after a conflict: the revision in the bucket is not revision.
func (c *Claim) lookAt(revision uint64) (again time.Duration) {
	ctx, cancel := context.WithTimeout(c.ctx, c.claims.cfg.TTL/5)
	defer cancel()
	e, err := c.claims.store.read(ctx, c.key)
	switch {
	case err != nil:
		c.fail(err)
		return c.soon()
	case e.isBefore(c.epoch) || e.is(c.claims.self, c.epoch) && e.revision <= revision:
		c.fail(fmt.Errorf("it says that its entry is not revision %d, and that it is %d", revision, e.revision))
		return c.soon()
	case e.is(c.claims.self, c.epoch):
		// the answer of a renewal was lost: its start is unknown, so renew at once
		c.adopt(e.revision)
		return 0
	}
	c.end(c.lost(e, nil))
	return 0
}

// note records a successful renewal that began at begin. It does not revive a claim that has ended.
func (c *Claim) note(revision uint64, begin time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision, c.renewed, c.trouble = revision, begin, nil
}

// adopt records the revision of a renewal after its answer was lost.
func (c *Claim) adopt(revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision = revision
}

// fail records the error of a renewal.
func (c *Claim) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}

// runOut ends a claim after its lease has expired.
func (c *Claim) runOut() {
	_, _, trouble := c.state()
	if trouble == nil {
		c.end(c.lost(entry{}, errStoodStill))
		return
	}
	c.end(c.lost(entry{}, &unrenewedError{trouble}))
}

// verify reads the entry after a hint that it has changed.
func (c *Claim) verify() {
	ctx, cancel := context.WithTimeout(c.ctx, c.claims.cfg.TTL/5)
	defer cancel()
	e, err := c.claims.store.read(ctx, c.key)
	if err != nil || e.is(c.claims.self, c.epoch) || e.isBefore(c.epoch) {
		return // the next renewal detects a loss, at the latest
	}
	c.end(c.lost(e, nil))
}

// lost returns the error of a claim that e has replaced.
func (c *Claim) lost(e entry, cause error) error {
	if cause == nil && !e.held {
		cause = errGone
	}
	return c.claims.cfg.Lost(Lost{c.key, c.epoch, e.by.node, e.epoch, cause})
}
