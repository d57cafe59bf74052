// Package sharing says what decides the answer to a served call beside its function, parameters and
// metadata, for code that gives one answer to several calls.
package sharing

import "context"

// Basis is what calls have in common that may get one answer. It can be compared.
type Basis struct {
	Node    any    // which serves the call
	Handler any    // the same function may have different ones for different peers
	Codec   string // name of the value codec of the session: bytes mean nothing without it
}

// Key is the key under which the context of a served call has its Basis.
type Key struct{}

// Of returns the Basis of the call that ctx belongs to, or ok == false if it belongs to none.
func Of(ctx context.Context) (b Basis, ok bool) {
	b, ok = ctx.Value(Key{}).(Basis)
	return b, ok
}
