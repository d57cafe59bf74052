package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/values"
)

// The view of a call for its handler: see handlerCall.

// rawParams implements handlerCall.
func (c *inboundCall) rawParams() []byte { return c.params }

// codecOf implements handlerCall.
func (c *inboundCall) codecOf() *values.Coder { return &c.x.Coder }

// decodedForKey implements handlerCall.
func (c *inboundCall) decodedForKey() *any {
	if _, t := c.Turn(); t != nil {
		return &t.Value
	}
	return nil
}

// decodeParams implements handlerCall.
func (c *inboundCall) decodeParams(v any) error {
	if err := c.x.Decode(c.params, v); err != nil {
		return c.badParams(err)
	}
	if c.x.Lender == nil && !c.intercepted() { // interceptors may read them later
		c.freeParams()
	}
	return nil
}

// decodeChanged is decodeParams for parameters that an interceptor has changed: only the original ones
// were checked on arrival.
func (c *inboundCall) decodeChanged(v any) error {
	if _, err := c.x.Weigh(c.params, c.handler.params); err != nil {
		return c.badParams(err)
	}
	return c.decodeParams(v)
}

// badParams returns the error for parameters of c that do not decode.
func (c *inboundCall) badParams(err error) error {
	a := values.Error(codec.BadParams, c.function(), c.handler.name, "parameters", err)
	a.Ran = codec.Refused
	return a
}

// encodeResult implements handlerCall.
func (c *inboundCall) encodeResult(k *dispatch.Workspace, v any) (result []byte, err error) {
	if c.x.Lender != nil {
		if result, ok := c.x.Lender.Bytes(v); ok {
			return result, nil
		}
	}
	result, err = c.x.Values.Append(k.Result[:0], v)
	if err != nil {
		return nil, values.Error(codec.BadResult, c.function(), c.handler.name, "result", err)
	}
	k.Result = result
	return result, nil
}
