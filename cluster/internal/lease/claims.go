// Package lease makes one node at a time the holder of a key, such as "device/4711": a lock, an
// election, or the place of a session. A [Claim] is an entry in a bucket with a time to live, which
// its node renews. The node gives the key up by its own clock before the entry expires, so no
// common clock is needed. Each claim has an epoch above those of all earlier claims of its key.
//
// A takeover, and a paused process, can leave an earlier holder that still makes calls.
// [Claim.Caller] marks calls with the key and the epoch, and the [Fence] of the called node rejects
// those of earlier holders. [Claims.CallerOf] is the other direction: calls for the present holder
// of a key, which its node serves only as long as it holds the key.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
)

// maxClaims bounds the number of keys that one node may hold.
const maxClaims = 1 << 16

// Config describes a node, and its use of NATS.
type Config struct {
	NATS   *nats.Conn
	Bucket jetstream.KeyValue // of the claims of all nodes

	// TTL is the time to live of the entries of Bucket.
	TTL time.Duration

	// Hints is the prefix of the subjects for hints that a key was taken over. The id of the node
	// to be notified follows.
	Hints string

	Name     string // of the node; empty if it cannot be called
	Node     string // its id
	Instance string // differs for each start of the node

	Held   func(Held) error // makes the error of a key that a node holds
	Lost   func(Lost) error // makes the error of a lost claim, which wraps ErrLost
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// Claims are the keys that a node holds. The methods are safe for concurrent use.
//
// The holder of a key is the owner named in its entry, as long as the bucket has the entry: the
// bucket drops it when it is TTL old. The holder writes the entry again each third of TTL. The
// lease counts from the moment before the last successful write was sent, and ends TTL less a
// margin later, regardless of later answers. So the holder has given the key up before other nodes
// can find it free, without a common clock. The margin, a fifth of TTL, covers clocks of different
// speed, and a new stream leader after one with a slow clock.
type Claims struct {
	cfg    Config // fixed, as all up to hinted
	store  *store
	self   owner
	ctx    context.Context // ends with life, and after close
	end    context.CancelCauseFunc
	hinted chan string // keys with a hint that they were taken over

	running sync.WaitGroup // goroutines of held; incremented with mu held, and never once closed

	mu     sync.Mutex
	closed bool                     // guarded by mu, as all below: no more keys are claimed
	held   map[string]*Claim        // by key
	busy   map[string]chan struct{} // keys being claimed; each channel is closed afterwards
}

// Open returns the claims of a node, which are empty, until [Claims.Close]. ctx bounds the wait for
// the subscription to hints.
func Open(ctx context.Context, cfg Config) (*Claims, error) {
	store, err := newStore(cfg.NATS, cfg.Bucket)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Claims{cfg: cfg, store: store, self: owner{cfg.Name, cfg.Node, cfg.Instance}}
	c.held, c.busy = make(map[string]*Claim), make(map[string]chan struct{})
	c.ctx, c.end = context.WithCancelCause(context.Background())
	if err := c.listen(ctx); err != nil {
		c.end(err)
		return nil, err
	}
	return c, nil
}

// lease is the duration of a claim from the start of its last renewal.
func (c *Claims) lease() time.Duration { return c.cfg.TTL - c.cfg.TTL/5 }

// since returns the time since begin. It is the larger one of the monotonic and the wall clock's,
// since the monotonic clock stops while a machine is suspended. So a wall clock that is set forward
// loses claims. One that is set back has no effect.
func (c *Claims) since(begin time.Time) time.Duration {
	now := c.cfg.Now()
	return max(now.Sub(begin), now.Round(0).Sub(begin.Round(0)))
}

// reserve gives the caller the exclusive right to claim a key within this node, until the caller
// calls done. It blocks while another caller has that right.
func (c *Claims) reserve(ctx context.Context, key string) (done func(), err error) {
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
func (c *Claims) tryReserve(key string) (before <-chan struct{}, err error) {
	if held := c.of(key); held != nil {
		held.Err() // ends it if its lease has expired
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch held := c.held[key]; {
	case held != nil && held.ctx.Err() == nil:
		return nil, &heldError{Held{key, c.self.node, held.epoch}}
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

func (c *Claims) unreserve(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.busy[key])
	delete(c.busy, key)
}

// hold makes a claim of a written entry, and begins to renew it. It reports false once claims are
// closed.
func (c *Claims) hold(key string, epoch, revision uint64, begin time.Time) (*Claim, bool) {
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
func (c *Claims) of(key string) *Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[key]
}

// forget removes a claim that has ended.
func (c *Claims) forget(claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[claim.key] == claim {
		delete(c.held, claim.key)
	}
}

// holds reports whether this node holds a key with that epoch, also by the local clock.
func (c *Claims) holds(key string, epoch uint64) bool {
	claim := c.of(key)
	return claim != nil && claim.epoch == epoch && claim.Err() == nil
}

// maxKey is the maximum length of a key in bytes. With its subject it stays far below the limit of
// NATS.
const maxKey = 200

// keyBytes are the valid bytes of a key, as in all NATS buckets.
const keyBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_=."

// checkKey returns an error if a key cannot be claimed.
func checkKey(key string) error {
	fault := ""
	switch {
	case key == "":
		fault = "it is empty"
	case len(key) > maxKey:
		return asterisque.ErrBadParams.Withf("the key %q... has %d bytes, and %d are the most", key[:16], len(key), maxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return !strings.ContainsRune(keyBytes, r) }):
		fault = "it may have letters and digits of ASCII, and - / _ = ."
	case strings.ContainsAny(key[:1]+key[len(key)-1:], "./"):
		fault = "it begins or ends with a dot or a slash"
	case strings.Contains(key, ".."):
		fault = "it has two dots in a row, which no subject of NATS may have"
	default:
		return nil
	}
	return asterisque.ErrBadParams.Withf("the key %q cannot be claimed: %s", key, fault)
}

// Holder is the node that holds a key.
type Holder struct {
	Name  string // empty if the node has no name and thus cannot be called
	Node  string // its id
	Epoch uint64 // of its claim: see [Claim.Epoch]
}

// Lookup reads the present holder of a key from NATS. It reports false without a holder. It fails
// with ErrBadParams if the key is invalid, and otherwise if NATS does not answer within ctx. A
// holder that has stopped, or cannot reach NATS, is still returned until its lease would expire.
func (c *Claims) Lookup(ctx context.Context, key string) (Holder, bool, error) {
	if err := checkKey(key); err != nil {
		return Holder{}, false, err
	}
	e, err := c.store.read(ctx, key)
	if err != nil {
		return Holder{}, false, unanswered("look up", key, err)
	}
	return Holder{e.by.name, e.by.node, e.epoch}, e.held, nil
}

// releasesAtOnce bounds the number of concurrent releases.
const releasesAtOnce = 256

// Close releases all claims, and rejects new ones. If ctx ends first, or NATS does not answer, some
// entries stay until they expire after TTL; Close then returns the error. All claims have ended
// when it returns, in any case.
func (c *Claims) Close(ctx context.Context) error {
	err := releaseAll(ctx, c.shut())
	c.end(ErrReleased)
	c.running.Wait()
	return err
}

// shut rejects new claims, and returns the held ones.
func (c *Claims) shut() (all []*Claim) {
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
		running sync.WaitGroup
		slots   = make(chan struct{}, releasesAtOnce)

		mu     sync.Mutex
		failed int   // guarded by mu, as last
		last   error // of the failed releases
	)
	for _, claim := range all {
		claim.end(ErrReleased) // all claims end at once, before the first request
	}
	for _, claim := range all {
		slots <- struct{}{}
		running.Go(func() { // ends with ctx
			defer func() { <-slots }()
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
