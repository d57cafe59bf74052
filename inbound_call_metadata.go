package asterisque

import (
	"log/slog"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/priority"
)

// metadata returns the metadata of c, decoded again each time, or nil.
func (c *inboundCall) metadata() map[string]any {
	if c.extras == nil || c.extras.metadata == "" {
		return nil
	}
	// checked on arrival
	m, _ := message.ParseMetadata([]byte(c.extras.metadata))
	return m
}

// key returns the idempotency key of a durable call, or nil.
func (c *inboundCall) key() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.key
}

// trace returns the trace context of the peer, or nil.
func (c *inboundCall) trace() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.trace
}

// priority returns the priority of the call.
func (c *inboundCall) priority() priority.Priority { return c.work.Priority }

// owner returns the owner of the session.
func (c *inboundCall) owner() *quota.Owner { return c.x.dispatcher().Owner() }

// forgetAnswer makes an error of the call be forgotten, if the call is durable.
func (c *inboundCall) forgetAnswer() {
	if c.key() != nil {
		c.x.durable().ForgetAnswer(c)
	}
}

// session returns the session of the call.
func (c *inboundCall) session() slog.LogValuer { return c.x.Session }

// setParams replaces the parameters, before the handler runs.
func (c *inboundCall) setParams(params []byte) { c.params = params }
