package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
)

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
