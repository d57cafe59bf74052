package call

import (
	"time"

	"github.com/asterisque-go/asterisque/priority"
)

// Options are the properties of a call from this side.
type Options struct {
	Priority priority.Priority
	Loss     uint8
	Durable  bool
	TTL      time.Duration
	Trace    []byte         // travels with the call
	Key      []byte         // of a durable call; nil: a Connection draws one
	Sent     func()         // called when a durable call has been sent
	Buffer   []byte         // empty; its capacity may receive the result
	Metadata map[string]any // takes precedence over that of the context
}
