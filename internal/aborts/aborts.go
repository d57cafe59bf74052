// Package aborts makes the errors of calls, pipes and sessions out of what has happened. Package
// codec has their type.
package aborts

import (
	"bytes"
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
)

// NeverSent returns a copy of err as an Abort, marked as the error of a call that never left this
// side.
func NeverSent(err error) *codec.Abort {
	a := *Of(err)
	a.Ran = codec.NeverSent
	return &a
}

// Of is [codec.AbortOf] for an error that may be the application's, and may panic in its methods.
func Of(err error) (a *codec.Abort) {
	defer func() {
		if recover() != nil {
			a = &codec.Abort{Code: codec.Failed, Message: "for an unknown reason: its error panics"}
		}
	}()
	return codec.AbortOf(err)
}

// Violation returns the error for a peer that broke the protocol.
func Violation(format string, args ...any) *codec.Abort {
	return &codec.Abort{Code: codec.Protocol, Message: fmt.Sprintf(format, args...)}
}

// OfContext is AbortOf(ctx.Err()), which must not be nil, with the application's cause.
func OfContext(ctx context.Context) *codec.Abort {
	a := *codec.AbortOf(ctx.Err())
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() {
		a.Message = fmt.Sprint(cause) // Sprint survives an error that panics
	}
	return &a
}

// Received returns a copy of the Abort in a Close of the peer. The slices of a are valid only for
// the moment.
func Received(a *codec.Abort) *codec.Abort {
	c := *a
	c.Detail = bytes.Clone(a.Detail)
	c.Remote = true
	return &c
}

// Size returns the bytes of the texts of a, 0 for nil.
func Size(a *codec.Abort) int {
	if a == nil {
		return 0
	}
	return len(a.Message) + len(a.Detail)
}
