package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
)

// Hooks are told what becomes of the sessions of a node. Each may be nil.
//
// For each session they are called one at a time, and in the order of what they tell: SessionBegun
// first, also of a session that is over at once, and SessionEnded last. For different sessions they
// are called concurrently. With several [WithHooks], all are told, in the order of the options.
//
// No lock is held. So a hook may block, and use or close the session, the connection or the node,
// which may have gone on meanwhile: nobody waits for hooks. They run on a goroutine that exists
// while there is something to tell of their session. A hook that never returns keeps that goroutine
// and the session for good, which is not bounded: let it end with Session.Done. One that panics, or
// ends its goroutine, is logged, and the next one is called all the same.
//
// When 16,384 reports of a session wait, further ones are only counted, and logged. What is told in
// any case is the last state of each direction, whether the session is away, and its end.
type Hooks struct {
	// SessionBegun is called when a session has begun, whichever side dialled.
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
}

// hooks are those of all options, by what they are told.
type hooks struct {
	begun, back  []func(*Session)
	ended, away  []func(*Session, error)
	limitChanged []func(*Session, Direction, limits.State)
	dropped      []func(*Session, Drop)
}

func (k *hooks) add(h Hooks) {
	addHook(&k.begun, h.SessionBegun, h.SessionBegun == nil)
	addHook(&k.back, h.SessionBack, h.SessionBack == nil)
	addHook(&k.ended, h.SessionEnded, h.SessionEnded == nil)
	addHook(&k.away, h.SessionAway, h.SessionAway == nil)
	addHook(&k.limitChanged, h.LimitChanged, h.LimitChanged == nil)
	addHook(&k.dropped, h.Dropped, h.Dropped == nil)
}

func addHook[F any](to *[]F, f F, none bool) {
	if !none {
		*to = append(*to, f)
	}
}

// watched is a session as the hooks of the application watch it. Each method returns at once.
type watched Session

// logged implements observed.
func (w *watched) logged() []any { return []any{"session", (*Session)(w)} }

// closed implements observed.
func (w *watched) closed() *bool { return &w.told }

// tell lets n hooks know, by their numbers.
func (w *watched) tell(what string, kind int, n int, f func(i int)) {
	if n > 0 {
		w.shared.reports.add(w, report{what: what, kind: kind, n: n, tell: f})
	}
}

// begun is called before anything else can happen to the session.
func (w *watched) begun() {
	f := w.cfg.hooks.begun
	w.tell("SessionBegun", noKind, len(f), func(i int) { f[i]((*Session)(w)) })
}

func (w *watched) away(cause error) {
	f := w.cfg.hooks.away
	w.tell("SessionAway", keepAway, len(f), func(i int) { f[i]((*Session)(w), cause) })
}

func (w *watched) back() {
	f := w.cfg.hooks.back
	w.tell("SessionBack", keepAway, len(f), func(i int) { f[i]((*Session)(w)) })
}

// ended is called when nobody reads or writes any more. Nothing is told after it.
func (w *watched) ended() {
	f := w.cfg.hooks.ended
	w.shared.reports.close(w, report{what: "SessionEnded", kind: keepEnded, n: len(f), tell: func(i int) {
		s := (*Session)(w)
		s.carrier.Wait() // who is about to end
		f[i](s, s.Err())
	}})
}

func (w *watched) limitChanged(d Direction, state limits.State) {
	f := w.cfg.hooks.limitChanged
	if len(f) == 0 {
		return // without the allocation of what follows: states change often
	}
	w.tell("LimitChanged", keepLimit+int(d), len(f), func(i int) { f[i]((*Session)(w), d, state) })
}

// dropped tells of drops, which stay as they are.
func (w *watched) dropped(drops []outbox.Drop) {
	f := w.cfg.hooks.dropped
	w.tell("Dropped", noKind, len(f)*len(drops), func(i int) {
		d := &drops[i/len(f)]
		f[i%len(f)]((*Session)(w), Drop{Open: d.Open, Reason: dropReasonOf[d.Reason], Marker: d.Marker})
	})
}

// dropReporter returns what the outbox calls with drops, or nil if nobody wants to know.
func (w *watched) dropReporter() func([]outbox.Drop) {
	if len(w.cfg.hooks.dropped) == 0 {
		return nil
	}
	return w.dropped
}
