package call

import (
	"log/slog"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/priority"
)

// Metadata returns the metadata of c, decoded again each time, or nil.
func (c *Inbound) Metadata() map[string]any {
	if c.extras == nil || c.extras.metadata == "" {
		return nil
	}
	// checked on arrival
	m, _ := message.ParseMetadata([]byte(c.extras.metadata))
	return m
}

// Key returns the idempotency key of a durable call, or nil.
func (c *Inbound) Key() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.key
}

// Trace returns the trace context of the peer, or nil.
func (c *Inbound) Trace() []byte {
	if c.extras == nil {
		return nil
	}
	return c.extras.trace
}

// Priority returns the priority of the call.
func (c *Inbound) Priority() priority.Priority { return c.work.Priority }

// Owner returns the owner of the session.
func (c *Inbound) Owner() *quota.Owner { return c.x.Dispatcher().Owner() }

// ForgetAnswer makes an error of the call be forgotten, if the call is durable.
func (c *Inbound) ForgetAnswer() {
	if c.Key() != nil {
		c.x.durable().ForgetAnswer(c)
	}
}

// Session returns the session of the call.
func (c *Inbound) Session() slog.LogValuer { return c.x.Session }

// SetParams replaces the parameters, before the handler runs.
func (c *Inbound) SetParams(params []byte) { c.params = params }
