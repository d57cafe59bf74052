package asterisque

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// dispatchPort is the session as the Output of its dispatcher, and of the Blocks of its
// calls.
type dispatchPort struct{ *sessionCalls }

// Grant implements Output.
func (o dispatchPort) Grant(total uint64) {
	o.carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
}

// WaitOutbound implements Output: it holds a worker back while the session is at its
// outbound soft limit, so that results do not pile up. It returns at the inbound soft limit: there
// the waiting calls have to be taken before reading can resume, and two peers that wait for each
// other's reading would deadlock.
func (o dispatchPort) WaitOutbound() {
	for room := o.outbound.Room(); room != nil; room = o.outbound.Room() {
		full := o.inbound.Full()
		if full == nil {
			return
		}
		select {
		case <-room:
		case <-full:
		case <-o.carrier.Context().Done():
			return
		}
	}
}

// MustWaitOutbound implements Output.
func (o dispatchPort) MustWaitOutbound() bool {
	return o.outbound.State() >= limits.Soft && o.inbound.State() < limits.Soft && o.carrier.Context().Err() == nil
}

// Taken implements piping.Ledger.
func (o dispatchPort) Taken(messages, bytes int) { o.inbound.Remove(messages, bytes) }

// Shelter implements piping.Ledger.
func (o dispatchPort) Shelter(bytes int) bool { return o.serving.dispatcher.Reserve(bytes) }
