package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
)

// maxClaims bounds the number of keys that one node may hold.
const maxClaims = 1 << 16

// claims are the claims of a node. The methods are safe for concurrent use.
//
// The holder of a key is the owner named in its entry, as long as the bucket has the entry: the
// bucket drops it when it is ttl old. The holder writes the entry again each third of ttl. The
// lease counts from the moment before the last successful write was sent, and ends ttl less a
// margin later, regardless of later answers. So the holder has given the key up before other nodes
// can find it free, without a common clock. The margin, a fifth of ttl, covers clocks of different
// speed, and a new stream leader after one with a slow clock.
type claims struct {
	nc     *nats.Conn // fixed, as all up to hinted
	store  *claimStore
	self   claimOwner
	hints  string // subject prefix of hints; the id of a node follows
	ttl    time.Duration
	log    *slog.Logger
	now    func() time.Time
	ctx    context.Context // ends with life, and after close
	end    context.CancelCauseFunc
	hinted chan string // keys with a hint that they were taken over

	running sync.WaitGroup // goroutines of held; incremented with mu held, and never once closed

	mu     sync.Mutex
	closed bool                     // guarded by mu, as all below: no more keys are claimed
	held   map[string]*Claim        // by key
	busy   map[string]chan struct{} // keys being claimed; each channel is closed afterwards
}

// newClaims returns empty claims of self. They end with life, which loses all keys held then; close
// releases them before. kv is their bucket, with the TTL ttl. Hints to this node arrive at the
// subject hints + "." + its id.
func newClaims(life context.Context, nc *nats.Conn, bucket jetstream.KeyValue, self claimOwner, hints string, ttl time.Duration, log *slog.Logger) (*claims, error) {
	store, err := newClaimStore(nc, bucket)
	if err != nil {
		return nil, err
	}
	c := &claims{nc: nc, store: store, self: self, hints: hints, ttl: ttl, log: log, now: time.Now}
	c.held, c.busy = make(map[string]*Claim), make(map[string]chan struct{})
	c.ctx, c.end = context.WithCancelCause(life)
	if err := c.listen(); err != nil {
		c.end(err)
		return nil, err
	}
	return c, nil
}

// lease is the duration of a claim from the start of its last renewal.
func (c *claims) lease() time.Duration { return c.ttl - c.ttl/5 }

// since returns the time since begin. It is the larger one of the monotonic and the wall clock's,
// since the monotonic clock stops while a machine is suspended. So a wall clock that is set forward
// loses claims. One that is set back has no effect.
func (c *claims) since(begin time.Time) time.Duration {
	now := c.now()
	return max(now.Sub(begin), now.Round(0).Sub(begin.Round(0)))
}

// reserve gives the caller the exclusive right to claim a key within this node, until the caller
// calls done. It blocks while another caller has that right.
func (c *claims) reserve(ctx context.Context, key string) (done func(), err error) {
	for {
		before, err := c.tryReserve(key)
		switch {
		case err != nil:
			return nil, err
		case before == nil:
			return func() { c.unreserve(key) }, nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, unanswered("claim", key, ctx.Err())
		}
	}
}

// tryReserve returns a channel that is closed when the caller before is done.
func (c *claims) tryReserve(key string) (before <-chan struct{}, err error) {
	if held := c.of(key); held != nil {
		held.Err() // ends it if its lease has expired
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch held := c.held[key]; {
	case held != nil && held.ctx.Err() == nil:
		return nil, &HeldError{key, c.self.node, held.epoch}
	case c.closed || c.ctx.Err() != nil:
		return nil, errClaimsOver
	case c.busy[key] != nil:
		return c.busy[key], nil
	case len(c.held)+len(c.busy) >= maxClaims:
		return nil, asterisque.ErrOverloaded.Withf("this node holds %d keys, or claims them: that is the most; release some", maxClaims)
	}
	c.busy[key] = make(chan struct{})
	return nil, nil
}

var errClaimsOver = asterisque.ErrUnavailable.Withf("nothing is claimed any more: this node has left its cluster")

func (c *claims) unreserve(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.busy[key])
	delete(c.busy, key)
}

// hold makes a claim of a written entry, and begins to renew it. It reports false once claims are
// closed.
func (c *claims) hold(key string, epoch, revision uint64, begin time.Time) (*Claim, bool) {
	claim := &Claim{claims: c, key: key, epoch: epoch, revision: revision, renewed: begin, stopped: make(chan struct{})}
	claim.ctx, claim.end = context.WithCancelCause(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		claim.end(errClaimsOver)
		return nil, false
	}
	c.held[key] = claim
	c.running.Go(claim.keep) // ends with the claim
	return claim, true
}

// of returns the claim of a key, or nil. The claim may have ended.
func (c *claims) of(key string) *Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[key]
}

// forget removes a claim that has ended.
func (c *claims) forget(claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[claim.key] == claim {
		delete(c.held, claim.key)
	}
}

// holds reports whether this node holds a key with that epoch, also by the local clock.
func (c *claims) holds(key string, epoch uint64) bool {
	claim := c.of(key)
	return claim != nil && claim.epoch == epoch && claim.Err() == nil
}
