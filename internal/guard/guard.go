// Package guard calls what the application plugs in: handlers, interceptors, callbacks, codecs,
// Wires.
//
// Such code may do worse than return an error: it may panic, or end its goroutine by
// runtime.Goexit, as t.FailNow does. Either is logged once, with the stack, and costs only what the
// code was called for. A goroutine that ends cannot be kept, so the caller defers what has to be
// done all the same. No lock is held while such code runs.
//
// There are three ways to call it. Code that is part of a call runs where the call does: under
// [Run], or, on the paths that have to be fast, under a deferred function that calls [Misbehaved].
// Code that answers a question of this side may block, so it has a goroutine of its own. Code that
// only observes is told later. The last two ways are in the root.
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

// Misbehaved logs that code of the application has not returned, and returns the error for that;
// what names the code. A deferred function calls it with the value that it has recovered, which is
// nil if the goroutine is being ended.
func Misbehaved(log *slog.Logger, what string, v any, attrs ...any) *codec.Abort {
	how := HowEnded(v)
	attrs = append(attrs, "stack", string(debug.Stack()))
	if v != nil {
		// a log that formats it by itself may panic as well
		attrs = append(attrs, "panic", fmt.Sprint(v))
	}
	log.Error(what+" "+how, attrs...)
	return codec.ErrPanicked.Withf("%s %s", what, how)
}

// HowEnded says what became of code that did not return. v is as for [Misbehaved].
func HowEnded(v any) string {
	if v == nil {
		return "ended its goroutine"
	}
	return "panicked"
}
