package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

const hard = limits.Hard

// end is one side of the session.
type end struct {
	index int
	plan  flow.Plan
	room  *flow.Budget

	prepaid    int            // bytes of streams that had ended before their handlers began
	blocksHeld int            // bytes of Blocks that count as those of running calls
	granted    []*flow.Waiter // granted claims whose Granted has not been called yet

	inbound  *flow.Counter
	outbound outbound
	outbox   outbox

	credit  credit // for Opens, of the peer
	extra   extraCredit
	nesting nesting

	dispatcher

	asleep sleepers
}

// sleepers are the applications that sleep for ever, by their resources.
type sleepers struct{ handlers, callers, params int }

// grant has the claims granted at some later time.
func (e *end) grant(claims []*flow.Waiter) { e.granted = append(e.granted, claims...) }

// GrantExtra implements flow.ExtraGranter.
func (e *end) GrantExtra() { e.outbox.extra = int(e.room.Extra()) }

// grantStep calls one of them.
func (s *session) grantStep(e *end) callResult {
	if len(e.granted) == 0 {
		return blocked
	}
	c := e.granted[0]
	e.granted = e.granted[1:]
	c.Granted(true)
	return moved
}

// readStep reads the next message from the wire.
func (s *session) readStep(e *end) callResult {
	w := &s.wires[1-e.index]
	if w.len() == 0 {
		return blocked
	}
	if k := w.first().kind; (k == openMessage || k == blockMessage || k == partMessage) && e.inbound.State() >= limits.Soft {
		s.check(false, "a reader waits at the soft limit")
		return blocked
	}
	m := w.pop()
	s.read(e, &m)
	if m.d != nil {
		s.checkDirection(m.d)
	}
	return moved
}

func (s *session) read(e *end, m *message) {
	switch m.kind {
	case openMessage:
		s.onOpen(e, m.c)
	case blockMessage:
		s.onBlock(e, m.d, m.sent)
	case partMessage:
		s.onPart(e, m.d, m)
	case nullMessage:
		s.onNullPart(e, m.d)
	case skipMessage:
		s.onSkip(e, m.d, m.sent)
	case endMessage:
		s.onEnd(e, m.d)
	case stopMessage:
		m.d.stoppedThere = true
	case resultMessage:
		s.onResult(e, m.c)
	case abortMessage:
		if m.c.from == e.index {
			s.onRefusal(e, m.c)
		} else {
			s.onCancel(e, m.c)
		}
	case creditControl:
		m.d.limit = max(m.d.limit, m.total)
	case opensControl:
		e.credit.limit = max(e.credit.limit, m.total)
	case extraControl:
		e.extra.limit = max(e.extra.limit, m.total)
	}
}
