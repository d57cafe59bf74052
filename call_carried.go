package asterisque

import "context"

// What a context says of the calls that are made with it stands under one key, so that a call looks
// it up once: which handler has the context, and the metadata that travels along.

// handledKey is the key under which the context of a handler has its call, which is a handled, and
// a context with metadata has a *carried.
type handledKey struct{}

// carried is what [ContextWithMetadata] puts into a context.
type carried struct {
	by       handled // of the contexts below; nil: no handler has them; fixed, as metadata
	metadata Metadata
}

// carriedBy returns the call of the handler that has ctx, nil if none has, and the metadata that
// calls made with ctx get.
func carriedBy(ctx context.Context) (handled, Metadata) {
	switch v := ctx.Value(handledKey{}).(type) {
	case *carried:
		return v.by, v.metadata
	case handled:
		return v, nil
	}
	return nil, nil
}

// ContextWithMetadata returns a context that lets m travel with all calls that are made with it, or
// with contexts derived from it, on whatever session. It goes over what ctx says already, each key
// by itself, and [WithMetadata] goes over both. See [Metadata] for what m may hold.
//
// Whoever serves such a call gets m, and no one further: what a handler is called with has no
// effect on the calls that it makes, unless it says so with ContextWithMetadata and [MetadataOf].
func ContextWithMetadata(ctx context.Context, m Metadata) context.Context {
	if len(m) == 0 {
		return ctx
	}
	by, under := carriedBy(ctx)
	return context.WithValue(ctx, handledKey{}, &carried{by, merged(under, m)})
}
