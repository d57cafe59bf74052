package asterisque

import "maps"

// Metadata is what a call says beside its parameters, to its handler and to all that stands between
// the two: an id of the request, the language of the user, a token. Values are strings or []byte,
// and a []byte may be empty. A map may have at most 32 entries and 4 KiB (4096 bytes), which is the
// sum of the lengths of all keys and values; keys have at least one byte, and keys and strings are
// valid UTF-8. A call with other metadata fails with ErrBadParams before it is sent, and the error
// names the entry.
//
// A caller gives it by [WithMetadata], or by [ContextWithMetadata] to all calls of a context; a
// handler has it from [MetadataOf]. It travels unencrypted but for what the Wire does, its bytes
// count towards the room that the peer has for calls ([Session.Call]) and towards its largest
// message, and it never goes further by itself: calls that a handler makes have their own. A peer
// that knows no metadata, an older one or one of the classic protocol, gets the call without.
//
// The functions that take a Metadata keep it until the calls that carry it are over, as it is: do
// not change it, nor the bytes in it, before.
type Metadata map[string]any

// Text returns the value of key as text, "" if there is none.
func (m Metadata) Text(key string) string {
	switch v := m[key].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// Bytes returns the value of key as bytes, nil if there is none. A value that is []byte is returned
// itself, and a string as a copy.
func (m Metadata) Bytes(key string) []byte {
	switch v := m[key].(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

// WithMetadata lets m travel with the call. It goes over what the context says by
// [ContextWithMetadata], and a later WithMetadata over an earlier one, each key by itself. The
// option may be made once and used by many calls at a time, as m may.
func WithMetadata(m Metadata) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.metadata = merged(c.metadata, m) }, 0}
}

// merged returns what under and over say together; over counts where both have a key. The result is
// one of them if that says all.
func merged(under, over Metadata) Metadata {
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
