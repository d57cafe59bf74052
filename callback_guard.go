package asterisque

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"

	"github.com/asterisque-go/asterisque/codec"
)

// What the application plugs in is called under a guard, with no lock held: handlers, callbacks,
// tracers, codecs, Wires. It may do worse than to return: it may panic, or end its goroutine by
// runtime.Goexit, as t.FailNow does. Either is logged once, with the stack, and costs only what
// it was called for. A goroutine that ends cannot be kept, so whoever runs such code defers what
// has to be done all the same.
//
// There are three ways to call it. What is part of a call runs where the call does: guard, or, on
// the paths that have to be fast, a deferred function that calls misbehaved. What answers a
// question of this side may block, and has a goroutine of its own: ask. What only observes is
// told later: reports.

// guard calls f, and reports whether that returned. If it ends the goroutine, guard does not
// return either.
func guard(log *slog.Logger, what string, f func(), attrs ...any) (ok bool) {
	defer func() {
		if !ok {
			misbehaved(log, what, recover(), attrs...)
		}
	}()
	f()
	return true
}

// misbehaved logs that what has not returned, and returns the error for it. It is called by a
// deferred function, with what that has recovered: nil if the goroutine is being ended.
func misbehaved(log *slog.Logger, what string, v any, attrs ...any) *Abort {
	how := howEnded(v)
	attrs = append(attrs, "stack", string(debug.Stack()))
	if v != nil {
		// a log that formats it by itself may panic as well
		attrs = append(attrs, "panic", fmt.Sprint(v))
	}
	log.Error(what+" "+how, attrs...)
	return codec.ErrPanicked.Withf("%s %s", what, how)
}

// howEnded says what became of code that did not return.
func howEnded(v any) string {
	if v == nil {
		return "ended its goroutine"
	}
	return "panicked"
}

// encode encodes what v points to behind dst, for whoever calls; handlers are guarded as a whole.
// If lend is true and v is its own encoding, that is returned, and lent says so.
func (s *Session) encode(dst []byte, v any, lend bool) (b []byte, lent bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // else it is the caller's own goroutine that ends
			b, lent, err = dst, false, misbehaved(s.cfg.log, "encoding a value", v, "session", s)
		}
	}()
	if lend && s.lender != nil {
		b, lent = s.lender.Bytes(v)
	}
	if !lent {
		b, err = s.values.Append(dst, v)
	}
	returned = true
	return b, lent, err
}

// decodeWithin decodes data into v, a pointer to a t, for whoever calls, unless it becomes too
// much. Up to free bytes never do. If keep is true, nobody else will use data, and v may keep it.
func (s *Session) decodeWithin(data []byte, v any, free int, t reflect.Type, keep bool) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // as in encode
			err = misbehaved(s.cfg.log, "decoding a value", v, "session", s)
		}
	}()
	switch {
	case keep && s.lender != nil:
		err = s.lender.Keep(data, v)
	case len(data) > free:
		if _, err = s.weigh(data, t); err != nil {
			break
		}
		fallthrough
	default:
		err = s.values.Decode(data, v)
	}
	returned = true
	return err
}
