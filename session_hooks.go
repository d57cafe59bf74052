package asterisque

import (
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/outbox"
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

// hookNotifier is the view of a session for the application's hooks. Each method returns at once.
type hookNotifier Session

// LogAttrs implements callback.Source.
func (w *hookNotifier) LogAttrs() []any { return []any{"session", (*Session)(w)} }

// Closed implements callback.Source.
func (w *hookNotifier) Closed() *bool { return &w.told }

// tell reports an event to n hooks, by their numbers.
func (w *hookNotifier) tell(what string, kind callback.Kind, n int, f func(i int)) {
	if n > 0 {
		w.shared.reports.Add(w, callback.Report{Name: what, Kind: kind, N: n, Call: f})
	}
}

// mostQuiet bounds how long the handlers of a session wait for SessionBegun.
const mostQuiet = time.Second

// begun is called before any other event of the session, and before any caller can have it.
func (w *hookNotifier) begun() {
	f := w.cfg.hooks.begun
	if len(f) == 0 {
		return
	}
	w.calls.Dispatcher().Pause()
	late := time.AfterFunc(mostQuiet, func() {
		if w.calls.Context().Err() == nil {
			w.cfg.log.Warn("handlers begin although SessionBegun has not returned", append(w.LogAttrs(), "after", mostQuiet)...)
		}
		w.calls.Dispatcher().Start()
	})
	w.tell("SessionBegun", callback.Event, len(f), func(i int) {
		if i == len(f)-1 {
			defer func() { // also if the last hook panics
				if late.Stop() {
					w.calls.Dispatcher().Start()
				}
			}()
		}
		f[i]((*Session)(w))
	})
}

func (w *hookNotifier) away(cause error) {
	f := w.cfg.hooks.away
	w.tell("SessionAway", callback.Suspended, len(f), func(i int) { f[i]((*Session)(w), cause) })
}

func (w *hookNotifier) back() {
	f := w.cfg.hooks.back
	w.tell("SessionBack", callback.Suspended, len(f), func(i int) { f[i]((*Session)(w)) })
}

// ended is called when no goroutine reads or writes any more. No event follows it.
func (w *hookNotifier) ended() {
	f := w.cfg.hooks.ended
	w.shared.reports.Close(w, callback.Report{Name: "SessionEnded", Kind: callback.Ended, N: len(f), Call: func(i int) {
		s := (*Session)(w)
		s.calls.Carrier.Wait() // the carrier is about to end
		f[i](s, s.Err())
	}})
}

func (w *hookNotifier) limitChanged(d Direction, state limits.State) {
	f := w.cfg.hooks.limitChanged
	if len(f) == 0 {
		return // avoids the allocation below: states change often
	}
	w.tell("LimitChanged", callback.InLimits+callback.Kind(d), len(f), func(i int) { f[i]((*Session)(w), d, state) })
}

// dropped reports drops, which are not modified.
func (w *hookNotifier) dropped(drops []outbox.Drop) {
	f := w.cfg.hooks.dropped
	w.tell("Dropped", callback.Event, len(f)*len(drops), func(i int) {
		d := &drops[i/len(f)]
		f[i%len(f)]((*Session)(w), Drop{Open: d.Open, Reason: dropReasonOf[d.Reason], Marker: d.Marker})
	})
}

// dropReporter returns the function that the outbox calls with drops, or nil without such hooks.
func (w *hookNotifier) dropReporter() func([]outbox.Drop) {
	if len(w.cfg.hooks.dropped) == 0 {
		return nil
	}
	return w.dropped
}

// DropReason is the reason for which a message was dropped.
type DropReason uint8

const (
	DropSessionLost DropReason = iota // the session ended before it left
	// its time to live, or the time to live or deadline of its call, expired before it left
	DropExpired
	DropThinned    // the session was under pressure, and the loss rate allowed it
	DropNoFunction // the peer does not have the function that was called
	DropDraining   // the peer shuts the session down, and did not accept the call
	DropEnded      // the call ended before it left, for any other reason
)

// dropReasonOf maps the reasons of the outbox.
var dropReasonOf = [...]DropReason{
	outbox.Closed:     DropSessionLost,
	outbox.Expired:    DropExpired,
	outbox.Thinned:    DropThinned,
	outbox.NoFunction: DropNoFunction,
	outbox.Draining:   DropDraining,
	outbox.Ended:      DropEnded,
}

var dropReasons = [...]string{
	DropSessionLost: "session lost",
	DropExpired:     "expired",
	DropThinned:     "thinned",
	DropNoFunction:  "no such function",
	DropDraining:    "peer draining",
	DropEnded:       "call ended",
}

func (r DropReason) String() string {
	if int(r) < len(dropReasons) {
		return dropReasons[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Drop describes a message that this side sent and that was dropped.
type Drop struct {
	Open   bool // a call, and not a Block
	Reason DropReason
	Marker any // value of pipe.WithMarker for the Block; nil without
}

// reporter returns the function that a counter calls when the state of its direction changes.
func (s *Session) reporter(d Direction) func(limits.State) {
	return func(state limits.State) {
		if state >= limits.Soft {
			s.cfg.log.Info("limit reached", "session", s, "direction", d, "state", state)
		}
		switch {
		case d == Outbound && state == limits.Soft:
			s.calls.Carrier.Thin()
		case d == Inbound:
			s.calls.Carrier.InboundChanged(state)
		}
		(*hookNotifier)(s).limitChanged(d, state)
	}
}
