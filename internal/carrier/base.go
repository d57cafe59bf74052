package carrier

import (
	"context"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
)

// base is what all parts of a Carrier stand on.
type base struct {
	*Settings // these are fixed
	host      host
	up        Upper
	ctx       context.Context // ends with the session; its cause is why
	out       *outbox.Outbox
	inbound   *limits.Counter
	outbound  *limits.Counter

	way   way // these lock themselves
	meter meter
	parts atomic.Pointer[parts] // nil until a message comes in parts
	route atomic.Pointer[route] // nil until the first mark is due over the present Wire
}

// closeWire closes the Wire. Repeated calls do nothing but wait until it is closed.
func (b *base) closeWire() { b.way.close(b.Log) }

// held returns how many bytes messages hold that come in parts.
func (b *base) held() int {
	if p := b.parts.Load(); p != nil {
		return p.bytes()
	}
	return 0
}

// host is what the parts of a Carrier ask of the whole.
type host interface {
	// End ends the session: see Carrier.End.
	End(cause *codec.Abort)

	// Lose ends the Wire: see Carrier.Lose.
	Lose(a *codec.Abort)

	// Control sends a Control: see Carrier.Control.
	Control(m message.Control, when When)

	// goesOnAfter reports whether the session goes on after a has ended its Wire.
	goesOnAfter(a *codec.Abort) bool
}

// When says when a message goes.
type When uint8

const (
	// Now writes at once what the Wire takes without waiting. A goroutine writes the rest.
	Now When = iota

	// WithNext lets a small Block wait for the next ones, if such a stream is likely: nothing has
	// come from the peer since the last of them. A Control waits for what its sender puts next,
	// which has to follow.
	WithNext

	// AfterReading lets the reader write it together with all else that answers what has arrived.
	// It is for the reader.
	AfterReading
)
