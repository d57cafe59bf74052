package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Hooks are told what becomes of the sessions of a node, and of its Shutdown. Each may be nil.
//
// For each session they are called one at a time, and in the order of what they tell: SessionBegun
// first, also of a session that is over at once, and SessionEnded last. For different sessions they
// are called concurrently. With several [WithHooks], all are told, in the order of the options.
//
// No handler of a session begins before all its SessionBegun have returned, or a second has passed,
// which is logged; but a call back that the peer makes within a call of this side does not wait.
//
// No lock is held. So a hook may block, and use or close the session, the connection or the node,
// which may have gone on meanwhile: nothing else waits for hooks. They run on a goroutine that
// exists while there is something to tell of their session. A hook that never returns keeps that
// goroutine and the session for good, which is not bounded: let it end with Session.Done. One that
// panics, or ends its goroutine, is logged, and the next one is called all the same.
//
// When 16,384 reports of a session wait, further ones are only counted, and logged. What is told in
// any case is the last state of each direction, whether the session is away, and its end.
type Hooks struct {
	// SessionBegun is called when a session has begun, whichever side dialled, before its first
	// handler: what it notes of the session, they find. It may call the peer. What takes longer
	// than a second belongs on a goroutine of its own.
	SessionBegun func(s *Session)

	// SessionEnded is called when a session has ended because of cause, after all that its
	// goroutines do: its Wire is closed, nobody reads or writes, and nothing else is told of it.
	// Handlers that ignore their context may run on.
	SessionEnded func(s *Session, cause error)

	// SessionAway is called when a session has lost its Wire because of cause, and waits for its
	// peer to come back: see [WithResume]. It is followed by SessionBack, or by SessionEnded.
	SessionAway func(s *Session, cause error)

	// SessionBack is called when a session that was away goes on over another Wire.
	SessionBack func(s *Session)

	// LimitChanged is called when the state of a direction changes: each change once. States are
	// described in package limits.
	LimitChanged func(s *Session, d Direction, state limits.State)

	// Dropped is called for each call and each Block that this side has accepted for sending and
	// that was dropped before it left. What is dropped on the other side, its application learns:
	// see [pipe.Block].
	Dropped func(s *Session, drop Drop)

	// Shutdown is called while [Node.Shutdown] waits for what still runs: when it begins, when
	// numbers change, but not more often than each 100 ms, and when all is over. The last call may
	// come after Node.Shutdown has returned. It is not called for [Session.Shutdown], nor for a
	// second Node.Shutdown.
	Shutdown func(p ShutdownProgress)
}

// ShutdownProgress is what still runs while a node shuts down; see [Hooks].Shutdown.
type ShutdownProgress struct {
	Sessions int // that have not ended
	// in these, of both sides, those that wait to be run included
	Calls int
	// after which time what still runs is cut, by [Timeouts].Drain or the context of Shutdown;
	// negative: never
	Left time.Duration
}

// hooks are those of all options, by what they are told.
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
