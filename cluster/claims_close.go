package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// releasesAtOnce bounds the number of concurrent releases.
const releasesAtOnce = 256

// close releases all claims, and rejects new ones. If ctx ends first, or NATS does not answer, some
// entries stay until they expire after ttl; close then returns the error. All claims have ended
// when it returns, in any case.
func (c *claims) close(ctx context.Context) error {
	err := releaseAll(ctx, c.shut())
	c.end(ErrReleased)
	c.running.Wait()
	return err
}

// shut rejects new claims, and returns the held ones.
func (c *claims) shut() (all []*Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, claim := range c.held {
		all = append(all, claim)
	}
	return all
}

func releaseAll(ctx context.Context, all []*Claim) error {
	var (
		running   sync.WaitGroup
		callables = make(chan struct{}, releasesAtOnce)

		mu     sync.Mutex
		failed int   // guarded by mu, as last
		last   error // of the failed releases
	)
	for _, claim := range all {
		claim.end(ErrReleased) // all claims end at once, before the first request
	}
	for _, claim := range all {
		callables <- struct{}{}
		running.Go(func() { // ends with ctx
			defer func() { <-callables }()
			if err := claim.Release(ctx); err != nil && !errors.Is(err, ErrLost) {
				mu.Lock()
				defer mu.Unlock()
				failed, last = failed+1, err
			}
		})
	}
	running.Wait()
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("cluster: %d of %d claims were not released, and run out by themselves: %w", failed, len(all), last)
}
