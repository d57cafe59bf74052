package asterisque

import "context"

// A context holds the handler's call and the metadata for nested calls under one key, so that a
// call looks both up at once.

// inboundParentKey is the key of that value: a handler's context has its call, an inboundParent,
// and a context with metadata has a *contextMetadata.
type inboundParentKey struct{}

// contextMetadata is the value of [ContextWithMetadata] in a context.
type contextMetadata struct {
	parent   inboundParent // of the contexts below; nil: none is a handler's; fixed, as metadata
	metadata Metadata
}

// carriedBy returns the call of the handler with the context ctx, or nil, and the metadata for
// calls made with ctx.
func carriedBy(ctx context.Context) (inboundParent, Metadata) {
	switch v := ctx.Value(inboundParentKey{}).(type) {
	case *contextMetadata:
		return v.parent, v.metadata
	case inboundParent:
		return v, nil
	}
	return nil, nil
}

// ContextWithMetadata returns a context that adds m to all calls made with it, or with contexts
// derived from it, on any session. For each key, m takes precedence over metadata in ctx, and
// [WithMetadata] over both. [Metadata] documents the limits of m.
//
// m reaches only the handler of such a call. Calls of that handler do not inherit the metadata; a
// handler passes it on with ContextWithMetadata and [MetadataOf].
func ContextWithMetadata(ctx context.Context, m Metadata) context.Context {
	if len(m) == 0 {
		return ctx
	}
	by, under := carriedBy(ctx)
	return context.WithValue(ctx, inboundParentKey{}, &contextMetadata{by, merged(under, m)})
}
