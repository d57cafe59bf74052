package cluster

import (
	"context"
)

// Holder is the node that holds a key.
type Holder struct {
	Name  string // empty if the node has none, and so cannot be called
	Node  string // its id
	Epoch uint64 // of its claim: see [Claim.Epoch]
}

// lookup asks NATS who holds a key. It reports false if nobody does, and fails with ErrBadParams if
// there can be no such key, and otherwise if NATS does not answer within ctx. A holder that has
// stopped, or cannot reach NATS, is still there for as long as a lease would last.
func (c *claims) lookup(ctx context.Context, key string) (Holder, bool, error) {
	if err := checkKey(key); err != nil {
		return Holder{}, false, err
	}
	e, err := c.store.read(ctx, key)
	if err != nil {
		return Holder{}, false, unanswered("look up", key, err)
	}
	return Holder{e.by.name, e.by.node, e.epoch}, e.held, nil
}
