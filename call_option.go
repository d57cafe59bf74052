package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/priority"
)

// CallOption sets one property of a call or pipe.
type CallOption struct {
	set   func(*callConfig, int64)
	value int64
}

// callConfig is the result of the options of a call. Calls without options share one, which must
// not be modified.
type callConfig struct {
	call.Options
	around []Interceptor
}

var noOptions callConfig

func newCallConfig(opts []CallOption) *callConfig {
	if len(opts) == 0 {
		return &noOptions
	}
	c := new(callConfig)
	for _, o := range opts {
		o.set(c, o.value)
	}
	return c
}

// WithPriority ranks the call, its Blocks and its result among the other calls of its session.
// Higher priorities are sent first, and they are first among calls that wait for the window of
// their function ([WithMaxOutstanding]).
func WithPriority(p priority.Priority) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.Priority = priority.Priority(v) }, int64(p)}
}

// WithTTL sets a time to live, from now on: a call that has not begun by then never runs, the
// context of a running one ends, and the caller gets ErrExpired. A deadline of the caller's context
// has the same effect; the earlier one counts. Less than a millisecond is rounded up to one.
func WithTTL(d time.Duration) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.TTL = time.Duration(v) }, int64(d)}
}

// WithLoss sets the loss rate, 0..127, of the Blocks that this side sends on the pipe: see
// [pipe.WithLoss]. Larger values count as 127. The other side sets the loss rate of its own Blocks.
func WithLoss(rate uint8) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.Loss = uint8(v) }, int64(min(rate, message.MaxLoss))}
}

// WithFailFast makes a call on a [Connection] fail at once, with ErrUnavailable, while the
// Connection reconnects. By default the call waits, as long as its context and its time to live
// allow.
func WithFailFast() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.FailFast = true }, 0}
}

// WithResultBuffer puts the result into buf, if its capacity is sufficient, instead of new memory.
// It works for results that are plain bytes: those of [Session.Call], and those of [Func] with the
// R []byte while the session uses [codec.Raw]. Present bytes of buf are overwritten. The library
// owns buf from the beginning of the call to its end, on error too; so one buffer, and the option,
// which may be reused, serve one caller at a time. The option saves time from about 1 KiB on; a
// quarter of the time of a call with a result of 64 KiB goes into new memory.
func WithResultBuffer(buf []byte) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.Buffer = buf[:0] }, 0}
}

// WithCallInterceptors wraps the call in interceptors, the first one outermost. It panics if an
// interceptor is nil. [Interceptor] lists the other places for interceptors.
func WithCallInterceptors(around ...Interceptor) CallOption {
	checkInterceptors("WithCallInterceptors", around)
	return CallOption{func(c *callConfig, _ int64) { c.around = append(c.around, around...) }, 0}
}

// WithDurable makes a call on a [Connection] survive the end of sessions. The call waits while
// there is no session, and is sent again on the next one, in the order of the durable calls of the
// connection, until it is answered or its context or time to live ends. If the peer shuts the
// session down, a call that waits for its answer keeps waiting there, while later ones go to the
// next session.
//
// The call carries a key, by which the peer runs it once, however often it arrives. The peer
// remembers the answer for some minutes (see [WithDurableAnswers]), in one process: a restarted
// peer, or another one at the same address, may run the call again. The handler of a durable call
// continues when its session ends, unless the call is nested. The durable calls of one peer that
// run at once, over all its sessions, are at most as many as the workers of one session. Nested
// durable calls, and calls that such a call waits for, run in addition.
//
// When its context ends, a durable call fails with the error of the context (errors.Is(err,
// context.Canceled) or context.DeadlineExceeded), even if its session had ended before: the call
// would have continued without the session. Only an answer that has arrived takes precedence.
//
// A peer of another protocol ([wire.Foreign]) accepts no key, and could run the call twice: then
// the call fails with ErrBadParams, and is not sent. If running twice is harmless, make the call
// without this option, and repeat it if it fails.
//
// No other peer gets the answer. A peer with a proved identity, by a Subject of [Access].Accept or
// a TLS certificate, has a key space of its own; without such a proof the key, which is
// unguessable, is the proof.
func WithDurable() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.Durable = true }, 0}
}

// WithIdempotencyKey is WithDurable with a key of the application, which can then repeat the same
// call itself: with the error of the first attempt that may have run, on another Connection, or
// after a restart. The peer runs the call once for as long as it remembers it (see
// [WithDurableAnswers]). The same key with another function, other parameters or another value
// codec is rejected with ErrBadParams.
//
// The key has 1 to 64 bytes. A caller with a proved identity may choose any key; any other caller
// needs 16 unguessable bytes, such as those of crypto/rand. The key must not be changed. On a
// [Session] the call is sent once.
func WithIdempotencyKey(key []byte) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.Durable, c.Key = true, key }, 0}
}

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
