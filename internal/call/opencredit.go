package call

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// openCredit is the sender's side of the budget for Opens: the cost of further Opens that the peer
// accepts, for which calls wait. The last eighth of the budget is reserved for calls with a
// priority above normal, so that an urgent call can leave although ordinary calls have used up the
// rest. It is closed when the peer accepts no more calls.
type openCredit struct {
	flow.Queue
	room  int64        // the peer's whole budget; 0: no limit; fixed
	limit atomic.Int64 // total granted
	// The peer supports metadata of calls; fixed, and here because it costs no memory.
	metadata bool
	keyless  bool // likewise: it accepts no idempotency keys
}

// init prepares o for a peer with the budget room, 0 meaning no limit, and with largest as the cost
// of its largest Open.
func (o *openCredit) init(room, largest uint64) {
	o.room = int64(min(room, message.MaxPipe))
	o.limit.Store(o.room)
	o.Init(o.room, max(0, min(o.room/8, o.room-int64(largest))))
}

// reserve takes credit for cost, or returns a Ticket to wait with.
func (o *openCredit) reserve(p priority.Priority, cost int64) *flow.Ticket {
	if o.room == 0 {
		return nil
	}
	return o.Acquire(p, cost)
}

// grant applies the peer's Credit. A total below an earlier one has no effect.
func (o *openCredit) grant(total uint64) {
	for old := o.limit.Load(); o.room > 0 && int64(total) > old; old = o.limit.Load() {
		if o.limit.CompareAndSwap(old, int64(total)) {
			o.Release(int64(total) - old)
			return
		}
	}
}

// giveBack returns the cost of an Open that was never sent.
func (o *openCredit) giveBack(cost int64) {
	if o.room > 0 {
		o.Release(cost)
	}
}

// used returns the used part of the peer's budget, and the budget.
func (o *openCredit) used() (used, room int) {
	if o.room == 0 {
		return 0, 0
	}
	return int(o.room - o.Left()), int(o.room)
}
