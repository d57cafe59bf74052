package call

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// contextWatch is the state of a context with watchers of its end.
type contextWatch struct {
	done   chan struct{}
	ended  contextEnd
	timer  *time.Timer // nil without a deadline
	afters map[*afterFunc]struct{}
}

// contextEnd is how a context has ended.
type contextEnd uint8

const (
	notEnded contextEnd = iota
	canceled
	expired
)

func (e contextEnd) err() error {
	switch e {
	case canceled:
		return context.Canceled
	case expired:
		return context.DeadlineExceeded
	}
	return nil
}

// endedUnwatched are the watches of all contexts that have ended without a watcher. They do not
// change.
var endedUnwatched = [...]*contextWatch{canceled: {done: wait.Over, ended: canceled}, expired: {done: wait.Over, ended: expired}}

// afterFunc is one registration of AfterFunc.
type afterFunc struct{ f func() }

// end records how the context has ended, and notifies all watchers. The caller holds the lock of
// the call.
func (w *contextWatch) end(how contextEnd) {
	w.ended = how
	close(w.done)
	if w.timer != nil {
		w.timer.Stop()
	}
	for a := range w.afters {
		go a.f() // as context.AfterFunc requires; ends with f
	}
	w.afters = nil
}
