// Package sharing describes the properties of an inbound call that determine its result besides its
// function, parameters and metadata, for code that shares one result among several calls.
package sharing

import "context"

// Basis is the common property of calls that may share a result. It is comparable.
type Basis struct {
	Node    any    // the node that serves the call
	Handler any    // a function may have different handlers for different peers
	Codec   string // name of the value codec of the session, by which bytes are interpreted
}

// Key is the context key of the Basis of an inbound call.
type Key struct{}

// Of returns the Basis of the call to which ctx belongs. ok is false if ctx belongs to none.
func Of(ctx context.Context) (b Basis, ok bool) {
	b, ok = ctx.Value(Key{}).(Basis)
	return b, ok
}
