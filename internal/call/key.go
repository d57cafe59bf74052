package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/values"
)

// nameKey computes the key of c for a function with keys. An error rejects the call.
func (c *Inbound) nameKey() error {
	k := c.Handler.Key
	held, err := c.weighForKey()
	if err != nil {
		return err
	}
	c.x.Dispatcher().Hold(held)
	defer c.x.Dispatcher().Hold(-held)
	key, value, err := k.KeyOf(c.x.Values, c.params)
	if err != nil {
		return values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	}
	if c.withinSame(&key) {
		return nil
	}
	t := dispatch.NewTurn(key, c)
	if c.keepsForKey() {
		t.Value, t.Held = value, uint32(buffer.Allocated(int(k.Params.Size())))
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
func (c *Inbound) keepsForKey() bool {
	k := c.Handler.Key
	return k.Params != nil && k.Params == c.Handler.Params && c.x.Lender == nil && !c.intercepted() && (c.extras == nil || c.extras.key == nil) &&
		(len(c.params) <= k.Free || c.work.DecodedSize.Bytes() <= max(c.heldParams(), len(unaryCall{}.small)))
}

// weighForKey returns the decoded size of c's parameters for their key. For the handler's type it
// is known already.
func (c *Inbound) weighForKey() (n int, err error) {
	k := c.Handler.Key
	switch {
	case k.Params == nil || len(c.params) <= k.Free:
		return 0, nil
	case k.Params == c.Handler.Params:
		return c.work.DecodedSize.Bytes(), nil
	}
	if n, err = c.x.Weigh(c.params, k.Params); err != nil {
		err = values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	}
	return n, err
}
