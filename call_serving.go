package asterisque

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// outlets is how the served calls of a session, and their Blocks, reach it.
type outlets struct{ *Session }

// grant implements outlet.
func (o outlets) grant(total uint64) {
	o.carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
}

// Taken implements piping.Ledger.
func (o outlets) Taken(messages, bytes int) { o.inbound.Remove(messages, bytes) }

// Shelter implements piping.Ledger.
func (o outlets) Shelter(bytes int) bool { return o.calls.shelter(bytes) }
