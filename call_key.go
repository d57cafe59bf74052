package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/values"
)

// nameKey computes the key of c for a function with keys. An error rejects the call.
func (c *inboundCall) nameKey() error {
	k := c.handler.key
	held, err := c.weighForKey()
	if err != nil {
		return err
	}
	c.x.dispatcher().Hold(held)
	defer c.x.dispatcher().Hold(-held)
	key, value, err := k.of(c.x.Values, c.params)
	if err != nil {
		return values.Error(codec.BadParams, c.function(), c.handler.name, "parameters", err)
	}
	if c.withinSame(&key) {
		return nil
	}
	t := dispatch.NewTurn(key, c)
	if c.keepsForKey() {
		t.Value, t.Held = value, uint32(buffer.Allocated(int(k.params.Size())))
		if c.heldParams() == 0 { // the parameters are a part of c
			t.Held += uint32(c.work.DecodedSize.Bytes())
		}
		c.freeParams()
	}
	c.makeRare().turn = t
	return nil
}

// keepsForKey reports whether the value decoded for the key is kept for the handler of c, so that
// it is not decoded again. It has to be of the same type, and hold no more than the parameters that
// it replaces, which must have no other use.
func (c *inboundCall) keepsForKey() bool {
	k := c.handler.key
	return k.params != nil && k.params == c.handler.params && c.x.Lender == nil && !c.intercepted() && (c.extras == nil || c.extras.key == nil) &&
		(len(c.params) <= k.free || c.work.DecodedSize.Bytes() <= max(c.heldParams(), len(unaryCall{}.small)))
}

// weighForKey returns the decoded size of c's parameters for their key. For the handler's type it
// is known already.
func (c *inboundCall) weighForKey() (n int, err error) {
	k := c.handler.key
	switch {
	case k.params == nil || len(c.params) <= k.free:
		return 0, nil
	case k.params == c.handler.params:
		return c.work.DecodedSize.Bytes(), nil
	}
	if n, err = c.x.Weigh(c.params, k.params); err != nil {
		err = values.Error(codec.BadParams, c.function(), c.handler.name, "parameters", err)
	}
	return n, err
}
