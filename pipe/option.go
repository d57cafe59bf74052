package pipe

import (
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// SendOption sets one property of a Block that is sent. Options may be made once and used for many
// Blocks.
type SendOption func(*outgoing)

// outgoing is a Block to be sent, with what the options say of it.
type outgoing piping.Outgoing

// WithTTL gives the Block this long to reach the application on the other side, from Send on. If
// its time is up while it waits on either side it is dropped, and counted: see [Block.Skipped]. The
// two clocks need not agree, so what counts is the time in which the Block waits here until it
// leaves, and there from the moment in which the session has read it. The time on the way does not
// count, and neither does that in the transport of a side that does not read, because its session
// is paused or at its soft limit. 0 is no limit. Less than a millisecond is rounded up to one.
func WithTTL(d time.Duration) SendOption {
	return func(b *outgoing) {
		b.Expires = time.Time{}
		if d > 0 {
			b.Expires = time.Now().Add(d)
		}
	}
}

// WithLoss lets the Block be dropped while the session is under pressure. Of Blocks with loss rate
// n, about n out of 127 are dropped then, and never more. 0 keeps the Block in any case. 127 drops
// all.
// Larger values count as 127. Without this option the loss rate of the pipe applies.
func WithLoss(rate uint8) SendOption {
	return func(b *outgoing) { b.Loss = min(rate, message.MaxLoss) }
}

// WithMarker has the report of a drop name the Block by marker, which is the application's own.
func WithMarker(marker any) SendOption { return func(b *outgoing) { b.Marker = marker } }

// newOutgoing returns a Block to be sent. Its loss rate is loss unless an option says otherwise.
func newOutgoing(payload []byte, loss uint8, opts []SendOption) piping.Outgoing {
	if len(opts) == 0 {
		// without the allocation that options cost
		return piping.Outgoing{Payload: payload, Loss: loss}
	}
	b := &outgoing{Payload: payload, Loss: loss}
	for _, o := range opts {
		o(b)
	}
	return piping.Outgoing(*b)
}
