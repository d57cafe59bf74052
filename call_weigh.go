package asterisque

import "github.com/asterisque-go/asterisque/codec"

// weigh finds out what the parameters of c become, once for all who decode them as what the handler
// takes.
func (c *served) weigh() error {
	h := c.handler
	if h.params == nil || len(c.params) <= h.free {
		return nil
	}
	return c.examine("codec", (*served).turnBack, func() error {
		n, err := c.x.weigh(c.params, h.params)
		if err != nil {
			return codecError(codec.BadParams, c.handler.number, h.name, "parameters", err)
		}
		c.work.becomes = roughly(n)
		return nil
	})
}
