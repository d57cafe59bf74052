package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Hooks report changes of the sessions of a node, and the progress of its Shutdown. Each may be
// nil.
//
// For each session the hooks are called one at a time, in the order of the events: SessionBegun
// first, even for a session that ends at once, and SessionEnded last. Hooks of different sessions
// are called concurrently. With several [WithHooks], all hooks are called, in the order of the
// options.
//
// No handler of a session begins before all its SessionBegun have returned, or a second has passed,
// which is logged. A call that the peer makes within a call of this side does not wait.
//
// Hooks are called without locks. A hook may block, and may use or close the session, the
// connection or the node. Their state may have changed since the event, as no other operation waits
// for hooks. Hooks run on a goroutine that exists while events of their session are pending. A hook
// that never returns keeps that goroutine and the session forever, without a bound: end it with
// Session.Done. A hook that panics, or ends its goroutine, is logged, and the next one is called.
//
// When 16,384 events of a session are pending, further ones are only counted, and logged. The last
// state of each direction, whether the session is suspended, and its end are always reported.
type Hooks struct {
	// SessionBegun is called when a session has begun, whichever side dialled, before its first
	// handler: handlers find the state that the hook stores for the session. The hook may call the
	// peer. Work of more than a second belongs on another goroutine.
	SessionBegun func(s *Session)

	// SessionEnded is called when a session has ended with cause. The Wire is closed, the
	// goroutines of the session have ended, and no further hook is called for it. Handlers that
	// ignore their context may still run.
	SessionEnded func(s *Session, cause error)

	// SessionAway is called when a session has lost its Wire with cause, and waits for its peer to
	// resume: see [WithResume]. SessionBack or SessionEnded follows.
	SessionAway func(s *Session, cause error)

	// SessionBack is called when a session has resumed over another Wire.
	SessionBack func(s *Session)

	// LimitChanged is called once for each change of the state of a direction. Package limits
	// documents the states.
	LimitChanged func(s *Session, d Direction, state limits.State)

	// Dropped is called for each call and each Block that this side has accepted for sending and
	// dropped before it left. [pipe.Block] reports to the application Blocks that the other side
	// dropped.
	Dropped func(s *Session, drop Drop)

	// Shutdown is called while [Node.Shutdown] waits: at its begin, when the numbers change, but at
	// most once in 100 ms, and at its end. The last call may come after Node.Shutdown has returned.
	// The hook is not called for [Session.Shutdown], nor for a second Node.Shutdown.
	Shutdown func(p ShutdownProgress)
}

// ShutdownProgress is the remaining work of a shutdown of the node; see [Hooks].Shutdown.
type ShutdownProgress struct {
	Sessions int // sessions that have not ended
	// calls in these, of both sides, including those that wait for a worker
	Calls int
	// time until the remaining calls are cut, by [Timeouts].Drain or the context of Shutdown;
	// negative: never
	Left time.Duration
}

// hooks are those of all options, by event.
type hooks struct {
	begun, back  []func(*Session)
	ended, away  []func(*Session, error)
	limitChanged []func(*Session, Direction, limits.State)
	dropped      []func(*Session, Drop)
	shutdown     []func(ShutdownProgress)
}

func (k *hooks) add(h Hooks) {
	addHook(&k.begun, h.SessionBegun, h.SessionBegun == nil)
	addHook(&k.back, h.SessionBack, h.SessionBack == nil)
	addHook(&k.ended, h.SessionEnded, h.SessionEnded == nil)
	addHook(&k.away, h.SessionAway, h.SessionAway == nil)
	addHook(&k.limitChanged, h.LimitChanged, h.LimitChanged == nil)
	addHook(&k.dropped, h.Dropped, h.Dropped == nil)
	addHook(&k.shutdown, h.Shutdown, h.Shutdown == nil)
}

func addHook[F any](to *[]F, f F, none bool) {
	if !none {
		*to = append(*to, f)
	}
}
