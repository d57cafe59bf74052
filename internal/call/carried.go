package call

import (
	"context"
	"maps"
)

// A context holds the handler's call and the metadata for nested calls under one key, so that a
// call looks both up at once.

// inboundParentKey is the key of that value: a handler's context has its call, an inboundParent,
// and a context with metadata has a *contextMetadata.
type inboundParentKey struct{}

// contextMetadata is the value of [ContextWithMetadata] in a context.
type contextMetadata struct {
	parent   inboundParent // of the contexts below; nil: none is a handler's; fixed, as metadata
	metadata map[string]any
}

// carriedBy returns the call of the handler with the context ctx, or nil, and the metadata for
// calls made with ctx.
func carriedBy(ctx context.Context) (inboundParent, map[string]any) {
	switch v := ctx.Value(inboundParentKey{}).(type) {
	case *contextMetadata:
		return v.parent, v.metadata
	case inboundParent:
		return v, nil
	}
	return nil, nil
}

// Of returns the call of a handler with the context ctx, or with a context derived from it, or nil.
func Of(ctx context.Context) *Inbound {
	by, _ := carriedBy(ctx)
	c, _ := by.(*Inbound)
	return c
}

// MetadataIn returns the metadata for calls made with ctx.
func MetadataIn(ctx context.Context) map[string]any {
	_, m := carriedBy(ctx)
	return m
}

// WithMetadata returns a context that adds m to all calls made with it.
func WithMetadata(ctx context.Context, m map[string]any) context.Context {
	if len(m) == 0 {
		return ctx
	}
	by, under := carriedBy(ctx)
	return context.WithValue(ctx, inboundParentKey{}, &contextMetadata{by, MergeMetadata(under, m)})
}

// MergeMetadata returns the union of under and over; over takes precedence. The result may be one
// of the two.
func MergeMetadata(under, over map[string]any) map[string]any {
	switch {
	case len(over) == 0:
		return under
	case len(under) == 0:
		return over
	}
	both := maps.Clone(under)
	maps.Copy(both, over)
	return both
}
