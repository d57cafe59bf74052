package cluster

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
)

// These bound what calls in the role of a holder may cost the one who is called.
const (
	fenceKeys     = 1 << 16         // of which the epoch is remembered
	fenceLookups  = 16              // at a time
	fencePatience = 2 * time.Second // until a lookup is over, with the wait for its turn
)

// fence keeps calls away whose key is held by somebody else by now. It stands around the calls that
// a node serves.
//
// A call in the role of a holder ([Claim.Caller]) has an epoch. The fence remembers the highest one
// of each key, lets calls with it in, and refuses all with a lower one. For a higher one, or a key
// that it does not remember, it asks NATS who holds the key: it remembers what NATS says, and not
// what the call says, so that nobody can lock a holder out by a number that is made up. If NATS
// does not answer, such a call is refused, with ErrUnavailable: the alternative would be to let an
// old holder in, which must never happen, and the holder loses its claim without NATS anyway. Calls
// with an epoch that is known go on without NATS.
type fence struct {
	claims  *claims       // fixed
	memory  *fenceEpochs  // locks itself
	lookups chan struct{} // has one for each that runs
}

func newFence(c *claims) *fence {
	return &fence{claims: c, memory: newFenceEpochs(fenceKeys), lookups: make(chan struct{}, fenceLookups)}
}

// intercept is the [asterisque.Interceptor] of the fence. Calls without metadata cost it nothing.
func (f *fence) intercept(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	if m := c.Metadata(ctx); len(m) > 0 && c.Served() {
		if err := f.check(ctx, m); err != nil {
			return c.Refuse(err)
		}
	}
	return next(ctx, c)
}

// check returns nil, or why a call is refused.
func (f *fence) check(ctx context.Context, m asterisque.Metadata) error {
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
func (f *fence) checkFrom(ctx context.Context, key string, epoch uint64) error {
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

// ask returns the epoch of the holder of a key, as NATS says, and remembers it; 0 if there is none.
// It does not ask if epoch was found out while the call waited for its turn.
func (f *fence) ask(ctx context.Context, key string, epoch uint64) (uint64, error) {
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
	h, held, err := f.claims.lookup(ctx, key)
	if err != nil || !held {
		return 0, err
	}
	return f.memory.note(key, h.Epoch), nil
}

// notHolder is the Detail of the refusal of a call that is for the holder of a key, by a node that
// is not.
const notHolder = "asterisque.cluster: not the holder"

// checkTo checks a call for the holder of a key: this node, now, with that very epoch.
func (f *fence) checkTo(key string, epoch uint64) error {
	if f.claims.holds(key, epoch) {
		return nil
	}
	a := asterisque.ErrUnavailable.Withf("this node does not hold %q with epoch %d: look up who does, and make the call there", key, epoch)
	a.Detail = []byte(notHolder)
	return a
}
