package lease

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// Bounds for the cost of calls in the role of a holder.
const (
	fenceKeys     = 1 << 16         // keys with a remembered epoch
	fenceLookups  = 16              // at the same time
	fencePatience = 2 * time.Second // for one lookup, including the wait for its turn
)

// Fence rejects calls from earlier holders of a key. It is an interceptor around the calls that a
// node serves.
//
// A call in the role of a holder ([Claim.Caller]) has an epoch. The fence remembers the highest
// epoch of each key. It admits calls with that epoch, and rejects calls with a lower one. For a
// higher epoch, or an unknown key, it looks up the holder in NATS. It remembers the epoch from
// NATS, and not that of the call, so that a forged epoch cannot lock a holder out. If NATS does not
// answer, the call is rejected with ErrUnavailable: the alternative would admit an earlier holder,
// which must never happen, and the holder loses its claim without NATS anyway. Calls with a known
// epoch do not depend on NATS.
type Fence struct {
	claims  *Claims       // set before the first call in the role of a holder
	memory  *fenceEpochs  // has its own lock
	lookups chan struct{} // semaphore of the lookups
}

// NewFence returns a fence, which needs [Fence.SetClaims] before the node serves its first call.
func NewFence() *Fence {
	return &Fence{memory: newFenceEpochs(fenceKeys), lookups: make(chan struct{}, fenceLookups)}
}

// SetClaims sets the claims of the node.
func (f *Fence) SetClaims(c *Claims) { f.claims = c }

// Intercept is the [asterisque.Interceptor] of the fence. Calls without metadata pass unchanged.
func (f *Fence) Intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if m := c.Metadata(ctx); len(m) > 0 && c.Inbound() {
		if err := f.check(ctx, m); err != nil {
			return c.Refuse(err)
		}
	}
	return next(ctx, c)
}

// check returns an error if a call is rejected.
func (f *Fence) check(ctx context.Context, m asterisque.Metadata) error {
	if _, said := m[asHolder]; said {
		key, epoch, err := parseClaimMark(asHolder, m.Text(asHolder))
		if err != nil {
			return err
		}
		if err = f.checkFrom(ctx, key, epoch); err != nil {
			return err
		}
	}
	if _, said := m[toHolder]; said {
		key, epoch, err := parseClaimMark(toHolder, m.Text(toHolder))
		if err != nil {
			return err
		}
		return f.checkTo(key, epoch)
	}
	return nil
}

// checkFrom checks a call in the role of the holder of a key.
func (f *Fence) checkFrom(ctx context.Context, key string, epoch uint64) error {
	if known := f.memory.of(key); known == epoch {
		return nil
	} else if known > epoch {
		return tooOld(key, epoch, known)
	}
	known, err := f.ask(ctx, key, epoch)
	switch {
	case err != nil:
		return asterisque.ErrUnavailable.Withf("a call of the holder of %q has an epoch that this node has to ask NATS about, which does not answer: make it again later", key)
	case known > epoch:
		return tooOld(key, epoch, known)
	case known < epoch:
		return asterisque.ErrUnauthorized.Withf("a call of the holder of %q has epoch %d, and NATS knows of no such claim: it was released, or ran out; claim the key again", key, epoch)
	}
	return nil
}

func tooOld(key string, epoch, known uint64) error {
	return asterisque.ErrUnauthorized.Withf("a call of the holder of %q has epoch %d, and epoch %d has held it since: stop what the claim was for, and claim the key again", key, epoch, known)
}

// ask returns the epoch of the present holder of a key from NATS, and remembers it; 0 if there is
// none. It does not ask if epoch became known while the call waited for its turn.
func (f *Fence) ask(ctx context.Context, key string, epoch uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, fencePatience)
	defer cancel()
	select {
	case f.lookups <- struct{}{}:
		defer func() { <-f.lookups }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if known := f.memory.of(key); known >= epoch {
		return known, nil
	}
	h, held, err := f.claims.Lookup(ctx, key)
	if err != nil || !held {
		return 0, err
	}
	return f.memory.note(key, h.Epoch), nil
}

// notHolder is the Detail of the error by which a node rejects a call for the holder of a key,
// because it is not the holder.
const notHolder = "asterisque.cluster: not the holder"

// checkTo checks a call for the holder of a key, which has to be this node, now, with that epoch.
func (f *Fence) checkTo(key string, epoch uint64) error {
	if f.claims.holds(key, epoch) {
		return nil
	}
	a := asterisque.ErrUnavailable.Withf("this node does not hold %q with epoch %d: look up the present holder, and make the call there", key, epoch)
	a.Detail = []byte(notHolder)
	return a
}

// fenceEpochs remembers the highest epoch of each key, for the most recently used ones.
type fenceEpochs struct {
	most int // fixed

	mu    sync.Mutex
	byKey map[string]*list.Element // elements of order by key; guarded by mu, as order
	order list.List                // of *fenceEpoch; the most recently used first
}

type fenceEpoch struct {
	key   string
	epoch uint64
}

func newFenceEpochs(most int) *fenceEpochs {
	return &fenceEpochs{most: most, byKey: make(map[string]*list.Element)}
}

// of returns the highest known epoch of a key, or 0.
func (e *fenceEpochs) of(key string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.byKey[key]
	if at == nil {
		return 0
	}
	e.order.MoveToFront(at)
	return at.Value.(*fenceEpoch).epoch
}

// note remembers epoch unless a higher one is known, and returns the highest.
func (e *fenceEpochs) note(key string, epoch uint64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := e.byKey[key]; at != nil {
		known := at.Value.(*fenceEpoch)
		known.epoch = max(known.epoch, epoch)
		e.order.MoveToFront(at)
		return known.epoch
	}
	e.byKey[key] = e.order.PushFront(&fenceEpoch{key, epoch})
	if e.order.Len() > e.most {
		delete(e.byKey, e.order.Remove(e.order.Back()).(*fenceEpoch).key)
	}
	return epoch
}
