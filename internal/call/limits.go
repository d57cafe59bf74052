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

// SetLimits replaces the limits of both directions, which are valid.
func (x *Calls) SetLimits(inbound, outbound limits.Limits) {
	if x.inbound.SetLimits(inbound) == limits.Hard {
		x.Fail(hardLimit("inbound", x.inbound))
	}
	if x.out.limit.SetLimits(outbound) == limits.Hard {
		x.Fail(hardLimit("outbound", x.out.limit))
	}
	x.resize(inbound.Soft)
}

// Limits returns the limits in force.
func (x *Calls) Limits() (inbound, outbound limits.Limits) {
	return x.inbound.Limits(), x.out.limit.Limits()
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
