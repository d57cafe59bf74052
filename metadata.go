package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/call"
)

// Metadata travels with a call beside its parameters, to its handler and all interceptors between:
// the id of a request, the language of a user, a token. Values are strings or []byte, and a []byte
// may be empty. A map may have at most 32 entries and 4 KiB (4096 bytes), the sum of the lengths of
// all keys and values. Keys have at least one byte; keys and strings are valid UTF-8. A call with
// other metadata fails with ErrBadParams before it is sent, and the error names the entry.
//
// A caller sets metadata by [WithMetadata], or by [ContextWithMetadata] for all calls of a context;
// a handler reads it by [MetadataOf]. Metadata is encrypted only by the Wire. Its bytes count
// towards the peer's budget for calls ([Session.Call]) and towards its largest message. Calls that
// a handler makes do not inherit it. A peer without metadata, with an older version or the classic
// protocol, receives the call without it.
//
// Functions that take a Metadata keep it, without a copy, until the calls that carry it have ended:
// do not change it, nor its bytes, before.
type Metadata map[string]any

// Text returns the value of key as text, or "" if there is none.
func (m Metadata) Text(key string) string {
	switch v := m[key].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// Bytes returns the value of key as bytes, or nil if there is none. A []byte is returned itself,
// and a string as a copy.
func (m Metadata) Bytes(key string) []byte {
	switch v := m[key].(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

// WithMetadata adds m to the call. For each key it takes precedence over [ContextWithMetadata], and
// a later WithMetadata over an earlier one. The option, and m, may be used by many calls at a time.
func WithMetadata(m Metadata) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.Metadata = call.MergeMetadata(c.Metadata, m) }, 0}
}

// ContextWithMetadata returns a context that adds m to all calls made with it, or with contexts
// derived from it, on any session. For each key, m takes precedence over metadata in ctx, and
// [WithMetadata] over both. [Metadata] documents the limits of m.
//
// m reaches only the handler of such a call. Calls of that handler do not inherit the metadata; a
// handler passes it on with ContextWithMetadata and [MetadataOf].
func ContextWithMetadata(ctx context.Context, m Metadata) context.Context {
	return call.WithMetadata(ctx, m)
}

// MetadataOf returns the metadata of the call that a handler serves. ctx is the handler's context,
// or derived from it. MetadataOf returns nil if there is no metadata, and for all other contexts.
// Each call decodes the metadata again, and the caller owns the result.
func MetadataOf(ctx context.Context) Metadata {
	if c := call.Of(ctx); c != nil {
		return c.Metadata()
	}
	return nil
}
