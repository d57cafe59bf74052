package cluster

import (
	"context"
)

// Holder is the node that holds a key.
type Holder struct {
	Name  string // empty if the node has no name and thus cannot be called
	Node  string // its id
	Epoch uint64 // of its claim: see [Claim.Epoch]
}

// lookup reads the present holder of a key from NATS. It reports false without a holder. It fails
// with ErrBadParams if the key is invalid, and otherwise if NATS does not answer within ctx. A
// holder that has stopped, or cannot reach NATS, is still returned until its lease would expire.
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
