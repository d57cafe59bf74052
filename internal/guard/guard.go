// Package guard calls code that the application provides: handlers, interceptors, callbacks,
// codecs, Wires.
//
// Such code may panic, or end its goroutine by runtime.Goexit, as t.FailNow does. Both are logged
// once, with the stack, and affect only the work for which the code was called. An ending goroutine
// cannot be kept, so the caller defers its mandatory work. No lock is held while such code runs.
//
// There are three ways to call it. Code that is part of a call runs on the goroutine of that call:
// under [Run], or, on performance-critical paths, under a deferred function that calls
// [Misbehaved]. Code that answers a query of this side may block, so it has a goroutine of its own.
// Code that only observes is called later. The last two ways are those of package callback.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asterisque-go/asterisque/codec"
)

// Run calls f, and reports whether f has returned. If f ends the goroutine, Run does not return
// either.
func Run(log *slog.Logger, what string, f func(), attrs ...any) (ok bool) {
	defer func() {
		if !ok {
			Misbehaved(log, what, recover(), attrs...)
		}
	}()
	f()
	return true
}

// Misbehaved logs that application code has not returned, and returns the error for that. what
// names the code. A deferred function calls Misbehaved with its recovered value, which is nil if
// the goroutine is being ended.
func Misbehaved(log *slog.Logger, what string, v any, attrs ...any) *codec.Abort {
	how := HowEnded(v)
	attrs = append(attrs, "stack", string(debug.Stack()))
	if v != nil {
		// a logger that formats the value itself might panic as well
		attrs = append(attrs, "panic", fmt.Sprint(v))
	}
	log.Error(what+" "+how, attrs...)
	return codec.ErrPanicked.Withf("%s %s", what, how)
}

// HowEnded describes how code has ended without a return. v is as for [Misbehaved].
func HowEnded(v any) string {
	if v == nil {
		return "ended its goroutine"
	}
	return "panicked"
}
