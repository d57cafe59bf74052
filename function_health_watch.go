package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/call"
)

// healthWatch is one call of WatchHealth.
type healthWatch struct {
	of    *Health // fixed, as the next two
	parts []string
	to    *Pipe[map[string]HealthState, struct{}]
	calls *call.Calls // of the session
	drain <-chan struct{}

	told map[string]HealthState // states sent so far; owned by the handler; nil: none
}

// run sends changes until the session drains.
func (w *healthWatch) run(ctx context.Context) error {
	for {
		over := closed(w.drain)
		now := w.of.now.Load()
		if err := w.tell(now.told(w.parts, w.calls.Drains()), over); err != nil && !over && !closed(w.drain) {
			return err
		}
		if over {
			return nil
		}
		select {
		case <-now.next:
		case <-w.drain:
		case <-w.to.p.Done(): // also if an interceptor has replaced the context
			return w.to.p.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell sends the changes to states, and keeps states. If the pipe is full, it waits until the
// session drains, or fails if last is set.
func (w *healthWatch) tell(states map[string]HealthState, last bool) error {
	news := states
	if w.told != nil {
		if news = newsOf(w.told, states); len(news) == 0 {
			return nil
		}
	}
	var err error
	if last {
		err = w.to.post(news)
	} else {
		err = w.to.Send(drainContext{context.Background(), w.drain}, news)
	}
	if err == nil {
		w.told = states
	}
	return err
}

// newsOf returns the states that have changed. Absent parts are unknown.
func newsOf(were, are map[string]HealthState) map[string]HealthState {
	news := make(map[string]HealthState)
	for part, state := range are {
		if were[part] != state {
			news[part] = state
		}
	}
	for part, state := range were {
		if _, ok := are[part]; !ok && state != HealthUnknown {
			news[part] = HealthUnknown
		}
	}
	return news
}

// drainContext is a context that ends when a session drains. The end of the call does not end it,
// but ends all waits on the pipe.
type drainContext struct {
	context.Context
	drain <-chan struct{}
}

// Done implements context.Context.
func (c drainContext) Done() <-chan struct{} { return c.drain }

// Err implements context.Context.
func (c drainContext) Err() error {
	if closed(c.drain) {
		return context.Canceled
	}
	return nil
}

// closed reports whether a channel without values is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
