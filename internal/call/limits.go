package call

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// arrived counts a message that waits for the application.
func (x *Calls) arrived(held int) {
	if x.inbound.Add(held) == limits.Hard {
		x.Fail(hardLimit("inbound", x.inbound))
	}
}

// count counts a message that is about to be sent, without blocking.
func (x *Calls) count(held uint32) limits.State {
	state := x.out.limit.Add(int(held))
	if state == limits.Hard {
		x.Fail(hardLimit("outbound", x.out.limit))
	}
	return state
}

// hardLimit returns the error of a session in which c, of a direction, has exceeded its hard limit.
func hardLimit(direction string, c *flow.Counter) *codec.Abort {
	return codec.ErrHardLimit.Withf("%s: %v wait, and the limit is %v", direction, c.Held(), c.Limits().Hard)
}

// SetLimits replaces the limits of both directions, which are valid. With windows a smaller inbound
// soft limit bounds new grants only: the messages that were granted before are read, since answers
// and credit come behind them.
func (x *Calls) SetLimits(inbound, outbound limits.Limits) {
	x.inboundLimits.Store(&inbound)
	in := inbound
	if p := x.serving.dispatcher.Plan(); x.out.terms.Budget != nil {
		in.Soft.Bytes, in.Soft.Messages = atLeast(in.Soft.Bytes, p.Room), atLeast(in.Soft.Messages, p.Room/p.Overhead)
	}
	if x.inbound.SetLimits(in) == limits.Hard {
		x.Fail(hardLimit("inbound", x.inbound))
	}
	if x.out.limit.SetLimits(outbound) == limits.Hard {
		x.Fail(hardLimit("outbound", x.out.limit))
	}
	x.resize(inbound.Soft)
}

// Limits returns the limits in force.
func (x *Calls) Limits() (inbound, outbound limits.Limits) {
	inbound = x.inbound.Limits()
	if set := x.inboundLimits.Load(); set != nil {
		inbound = *set
	}
	return inbound, x.out.limit.Limits()
}

// atLeast returns a limit that is not below least; 0 is no limit.
func atLeast(limit, least int) int {
	if limit == 0 {
		return 0
	}
	return max(limit, least)
}

// resize applies a soft limit to new grants.
func (x *Calls) resize(soft limits.Amount) {
	if x.out.terms.Budget == nil {
		return
	}
	bytes := soft.Bytes
	if most := soft.Messages * int(x.out.terms.Overhead); most > 0 && (bytes == 0 || most < bytes) {
		bytes = most // minimum cost of a message
	}
	flow.Grant(x.out.terms.Budget.Resize(bytes))
}
