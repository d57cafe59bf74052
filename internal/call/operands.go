package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/values"
)

// The view of a call for its handler: see HandlerCall.

// RawParams implements HandlerCall.
func (c *Inbound) RawParams() []byte { return c.params }

// Coder implements HandlerCall.
func (c *Inbound) Coder() *values.Coder { return &c.x.Coder }

// DecodedForKey implements HandlerCall.
func (c *Inbound) DecodedForKey() *any {
	if _, t := c.Turn(); t != nil {
		return &t.Value
	}
	return nil
}

// DecodeParams implements HandlerCall.
func (c *Inbound) DecodeParams(v any) error {
	if err := c.x.Decode(c.params, v); err != nil {
		return c.badParams(err)
	}
	if c.x.Lender == nil && !c.intercepted() { // interceptors may read them later
		c.freeParams()
	}
	return nil
}

// DecodeChanged is DecodeParams for parameters that an interceptor has changed: only the original
// ones were checked on arrival.
func (c *Inbound) DecodeChanged(v any) error {
	if _, err := c.x.Weigh(c.params, c.Handler.Params); err != nil {
		return c.badParams(err)
	}
	return c.DecodeParams(v)
}

// badParams returns the error for parameters of c that do not decode.
func (c *Inbound) badParams(err error) error {
	a := values.Error(codec.BadParams, c.Function(), c.Handler.Name, "parameters", err)
	a.Ran = codec.Refused
	return a
}

// EncodeResult implements HandlerCall.
func (c *Inbound) EncodeResult(k *dispatch.Workspace, v any) (result []byte, err error) {
	if c.x.Lender != nil {
		if result, ok := c.x.Lender.Bytes(v); ok {
			return result, nil
		}
	}
	result, err = c.x.Values.Append(k.Result[:0], v)
	if err != nil {
		return nil, values.Error(codec.BadResult, c.Function(), c.Handler.Name, "result", err)
	}
	k.Result = result
	return result, nil
}
