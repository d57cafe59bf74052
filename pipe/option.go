package pipe

import (
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/piping"
)

// SendOption sets one property of a Block to send. An option may be used for many Blocks.
type SendOption func(*preparedBlock)

// preparedBlock is a Block to send, with the properties that its options set.
type preparedBlock piping.Outgoing

// WithTTL limits the time from Send until the Block reaches the application of the peer. A Block
// that expires while it waits on either side is dropped and counted: see [Block.Skipped].
//
// The clocks of the two sides need not agree. The time counts on the sending side until the Block
// leaves, and on the receiving side from the moment at which the session has read the Block. Time
// in transit does not count. Time in the transport of a side that does not read, because its
// session is paused or at its soft limit, does not count either. 0 means no limit. Less than a
// millisecond is rounded up to one.
func WithTTL(d time.Duration) SendOption {
	return func(b *preparedBlock) {
		b.Expires = time.Time{}
		if d > 0 {
			b.Expires = time.Now().Add(d)
		}
	}
}

// WithLoss permits the session to drop the Block while it is under pressure. With loss rate n,
// about n of 127 Blocks are dropped then, and never more. 0 keeps the Block in any case. 127 drops
// all Blocks. Larger values count as 127. Without this option the loss rate of the pipe applies.
func WithLoss(rate uint8) SendOption {
	return func(b *preparedBlock) { b.Loss = min(rate, message.MaxLoss) }
}

// WithMarker identifies the Block in the report of a drop by marker, a value of the application.
func WithMarker(marker any) SendOption { return func(b *preparedBlock) { b.Marker = marker } }

// newOutgoing returns a Block to send. Its loss rate is loss unless an option sets another one.
func newOutgoing(payload []byte, loss uint8, opts []SendOption) piping.Outgoing {
	if len(opts) == 0 {
		// avoids the allocation that options need
		return piping.Outgoing{Payload: payload, Loss: loss}
	}
	b := &preparedBlock{Payload: payload, Loss: loss}
	for _, o := range opts {
		o(b)
	}
	return piping.Outgoing(*b)
}
