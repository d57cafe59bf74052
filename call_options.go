package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/priority"
)

// callOptions are the properties of a call from this side.
type callOptions struct {
	priority priority.Priority
	loss     uint8
	durable  bool
	ttl      time.Duration
	trace    []byte         // travels with the call
	key      []byte         // of a durable call; nil: a Connection draws one
	sent     func()         // called when a durable call has been sent
	buffer   []byte         // empty; its capacity may receive the result
	metadata map[string]any // takes precedence over that of the context
}
