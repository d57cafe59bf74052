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

// maxClaims bounds how many keys one node may hold.
const maxClaims = 1 << 16

// claims are what a node holds. The methods are safe for concurrent use.
//
// A key is held by whom its entry in the bucket names, as long as that is there: the bucket drops
// it when it is ttl old. A holder writes it anew each third of that, and counts from the moment
// before it sent what was written last: ttl less a margin later, without another write, it holds
// the key no more, whatever it hears later. So it has given up before others find the key free,
// without a common clock. The margin, a fifth of ttl, is for clocks that run at different speeds,
// and for a leader of the stream that follows another whose clock was behind.
type claims struct {
	nc     *nats.Conn // these are fixed
	store  *claimStore
	self   owner
	hints  string // subject prefix: the id of a node follows
	ttl    time.Duration
	log    *slog.Logger
	now    func() time.Time
	ctx    context.Context // ends with the life, and after close
	end    context.CancelCauseFunc
	hinted chan string // keys that are said to have been taken over

	running sync.WaitGroup // those of held; one is added with mu held, and none once closed

	mu     sync.Mutex
	closed bool                     // guarded by mu, as all below: nothing is claimed any more
	held   map[string]*Claim        // by key
	busy   map[string]chan struct{} // keys that are being claimed; closed when that is over
}

// newClaims returns the claims of self, without any. They end with life, which loses all that are
// held then: close releases them before. kv is their bucket, whose TTL is ttl. Hints to this node
// arrive at the subject that is the prefix hints, a dot, and its id.
func newClaims(life context.Context, nc *nats.Conn, kv jetstream.KeyValue, self owner, hints string, ttl time.Duration, log *slog.Logger) (*claims, error) {
	store, err := newClaimStore(nc, kv)
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

// lease is how long a claim is held after the beginning of its last renewal.
func (c *claims) lease() time.Duration { return c.ttl - c.ttl/5 }

// since returns how long ago begin was: by the monotonic clock, or by the one on the wall if that
// says more, as the first one stands still while a machine is suspended. So a wall clock that is
// set forward loses claims; one that is set back does nothing.
func (c *claims) since(begin time.Time) time.Duration {
	now := c.now()
	return max(now.Sub(begin), now.Round(0).Sub(begin.Round(0)))
}

// reserve lets the caller alone claim a key in this node, until it calls done. It waits for
// another one who does.
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

// tryReserve returns a channel that is closed when the one before is done.
func (c *claims) tryReserve(key string) (before <-chan struct{}, err error) {
	if held := c.of(key); held != nil {
		held.Err() // which ends it if its lease ran out
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

// hold makes a claim of an entry that was written, and begins to renew it. It reports false once
// claims are closed.
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

// of returns the claim of a key, or nil. It may be over already.
func (c *claims) of(key string) *Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[key]
}

// forget is called when a claim is over.
func (c *claims) forget(claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[claim.key] == claim {
		delete(c.held, claim.key)
	}
}

// holds reports whether this node holds a key with that epoch, by its clock as well.
func (c *claims) holds(key string, epoch uint64) bool {
	claim := c.of(key)
	return claim != nil && claim.epoch == epoch && claim.Err() == nil
}
