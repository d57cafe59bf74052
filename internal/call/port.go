package call

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/limits"
)

// dispatchPort is the session as the Output of its dispatcher, and of the Blocks of its
// calls.
type dispatchPort struct{ *Calls }

// Grant implements Output.
func (o dispatchPort) Grant(total uint64) {
	o.Carrier.Control(message.Credit{Opens: true, Limit: total}, carrier.Now)
}

// WaitOutbound implements Output: it holds a worker back while the session is at its
// outbound soft limit, so that results do not pile up. It returns at the inbound soft limit: there
// the waiting calls have to be taken before reading can resume, and two peers that wait for each
// other's reading would deadlock.
func (o dispatchPort) WaitOutbound() {
	for room := o.Outbound.Room(); room != nil; room = o.Outbound.Room() {
		full := o.Inbound.Full()
		if full == nil {
			return
		}
		select {
		case <-room:
		case <-full:
		case <-o.Carrier.Context().Done():
			return
		}
	}
}

// MustWaitOutbound implements Output.
func (o dispatchPort) MustWaitOutbound() bool {
	return o.Outbound.State() >= limits.Soft && o.Inbound.State() < limits.Soft && o.Carrier.Context().Err() == nil
}

// Taken implements piping.Ledger.
func (o dispatchPort) Taken(messages, bytes int) { o.Inbound.Remove(messages, bytes) }

// Shelter implements piping.Ledger.
func (o dispatchPort) Shelter(bytes int) bool { return o.serving.dispatcher.Reserve(bytes) }
