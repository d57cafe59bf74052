package flowmodel

import (
	"fmt"
	"strings"
)

// story describes the waiting calls and the resources they wait for.
func (s *session) story() string {
	var b strings.Builder
	for i := range s.ends {
		e := &s.ends[i]
		fmt.Fprintf(&b, "end %d: %+v\n  in %v, out %v, messages wait: %v; room %+v; Opens %d of %d used; %+v\n", i,
			e.plan, e.inbound.Held(), e.outbound.Held(), e.outbound.Queued(), e.room.Load(),
			e.credit.used, e.credit.limit, e.dispatcher)
		if w := &s.wires[i]; w.len() > 0 {
			fmt.Fprintf(&b, "  its wire holds %d messages, first %s of %d bytes\n", w.len(), kindNames[w.first().kind], w.first().size)
		}
	}
	shown := 0
	for _, c := range s.calls {
		if s.waits(c) && shown < 6 {
			b.WriteString("  " + c.story() + "\n")
			shown++
		}
	}
	return b.String()
}

// story describes the state of a call in a few lines.
func (c *call) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "call %d from end %d", c.id, c.from)
	if c.parent != nil {
		fmt.Fprintf(&b, " within %d", c.parent.id)
	}
	fmt.Fprintf(&b, ", cost %d, priority %d: its caller waits for %s, it %s", c.cost, c.priority, callerWaits[c.caller], calleeIs[c.callee])
	fmt.Fprintf(&b, "; %+v, over %v, cancelled %v, to nest %d", c.habits, c.over, c.cancelled, c.toNest)
	if c.kids > 0 {
		fmt.Fprintf(&b, ", with %d calls within it", c.kids)
	}
	for _, d := range []*direction{&c.up, &c.down} {
		if c.stream && c.caller > callerOutbound {
			fmt.Fprintf(&b, "\n    up %v: %+v\n      %+v", d.isUp, d.sending, d.receiving)
		}
	}
	return b.String()
}
