package carrier

import (
	"context"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// carrierBase is the state that all parts of a Carrier share.
type carrierBase struct {
	*Settings // fixed, as are host and up
	host      carrierHost
	receiver  Receiver
	session   Session
	ctx       context.Context // ends with the session; its cause is the reason
	out       *outbox.Outbox
	inbound   *flow.Counter
	outbound  *flow.Counter

	transport transportSlot // way and meter lock themselves
	meter     meter
	parts     atomic.Pointer[reassembler] // nil until the first message in parts
	route     atomic.Pointer[pathTracker] // nil until the first mark over the present Wire
}

// closeWire closes the Wire. Each call returns when the Wire is closed.
func (b *carrierBase) closeWire() { b.transport.close(b.Log) }

// held returns the bytes that unfinished messages in parts hold.
func (b *carrierBase) held() int {
	if p := b.parts.Load(); p != nil {
		return p.bytes()
	}
	return 0
}

// carrierHost is the Carrier, in the view of its parts.
type carrierHost interface {
	// End ends the session: see Carrier.End.
	End(cause *codec.Abort)

	// Lose ends the Wire: see Carrier.Lose.
	Lose(a *codec.Abort)

	// Control sends a Control: see Carrier.Control.
	Control(m message.Control, when When)

	// relieve drops messages that no application will take: see Session.Relieve.
	relieve() bool

	// goesOnAfter reports whether the session survives the loss of its Wire with error a.
	goesOnAfter(a *codec.Abort) bool
}

// When is the time at which a message is written.
type When uint8

const (
	// Now writes at once as much as the Wire accepts without blocking. A goroutine writes the rest.
	Now When = iota

	// WithNext makes a small Block wait for the next Blocks if a stream of them is likely: no frame
	// of the peer has arrived since the previous one. A Control waits for the next message of its
	// sender, which has to follow.
	WithNext

	// AfterReading has the reader write the message together with all other replies to the frames
	// that have arrived. It is for the reader.
	AfterReading
)
