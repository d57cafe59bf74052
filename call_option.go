package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/priority"
)

// CallOption sets one property of a call or pipe.
type CallOption struct {
	set   func(*callConfig, int64)
	value int64
}

// callConfig is what the options of a call fill in. Calls without options share one: whoever
// changes it changes a copy.
type callConfig struct {
	priority priority.Priority
	loss     uint8
	failFast bool
	durable  bool
	ttl      time.Duration
	around   []Interceptor
	trace    []byte   // travels with the call
	key      []byte   // of a durable call; nil: a Connection draws one
	sent     func()   // is called when a durable call has been sent
	buffer   []byte   // empty; the result may be put into what it has room for
	metadata Metadata // goes over that of the context
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

// WithPriority ranks the call, its Blocks and its result among the other calls of its session; the
// higher goes first, and so it does where calls wait for the window of their function
// ([WithCallWindow]).
func WithPriority(p priority.Priority) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.priority = priority.Priority(v) }, int64(p)}
}

// WithTTL gives the call this long, from now on: a call that has not begun by then never runs, one
// that runs has its context end, and the caller gets ErrExpired. A deadline of the caller's context
// does the same; the earlier one counts. Less than a millisecond is rounded up to one.
func WithTTL(d time.Duration) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.ttl = time.Duration(v) }, int64(d)}
}

// WithLoss sets the loss rate, 0..127, of the Blocks that this side sends on the pipe: see
// [pipe.WithLoss]. Larger values count as 127. The Blocks of the other side have the loss rate that
// it gives them.
func WithLoss(rate uint8) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.loss = uint8(v) }, int64(min(rate, message.MaxLoss))}
}

// WithFailFast lets a call on a [Connection] fail at once, with ErrUnavailable, while that is
// connecting again. By default the call waits, as long as its context and its time to live allow.
func WithFailFast() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.failFast = true }, 0}
}

// WithResultBuffer puts the result into buf, if there is room for it, instead of new memory. It is
// for results that are bytes as they came: those of [Session.Call], and those of [Func] whose R is
// []byte while the session uses [codec.Raw]. The bytes that buf holds already are overwritten. From
// the beginning of the call to its end, whatever that is, buf is the library's; so one buffer, and
// the option, which may be made once, serve one caller at a time. It pays from about 1 KiB on; a
// quarter of the time of a call with a result of 64 KiB goes into new memory.
func WithResultBuffer(buf []byte) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.buffer = buf[:0] }, 0}
}

// WithCallInterceptors puts interceptors around the call, the first one outermost. It panics if one
// of them is nil. See [Interceptor] for who else may stand around it.
func WithCallInterceptors(around ...Interceptor) CallOption {
	checkInterceptors("WithCallInterceptors", around)
	return CallOption{func(c *callConfig, _ int64) { c.around = append(c.around, around...) }, 0}
}

// WithDurable lets a call on a [Connection] outlive sessions: it waits while there is none, and
// goes out again on the next one, in the order of the durable calls of the connection, until it is
// answered or its context or time to live ends. One that waits for its answer when the peer shuts
// the session down waits on there, while later ones go to the next session. A key that travels with
// it lets the peer run it once, however often it arrives; the peer remembers the answer for some
// minutes (see [WithDurableAnswers]), in one process: a peer that was started anew, or another one
// at the same address, may run it again. The handler of a durable call goes on when its session
// ends, unless the call was made within another one. At most as many durable calls of one peer run
// at once, over all its sessions, as one session has workers. Those run beside them that are made
// within other calls, or for which such a call waits.
//
// A durable call whose context ends has that end as its error (errors.Is(err, context.Canceled) or
// context.DeadlineExceeded), also when its session was over before: the call would have gone on
// without the session. Only an answer that had arrived comes before it.
//
// A peer of another protocol ([wire.Foreign]) takes no key, and could run the call twice: then the
// call fails with ErrBadParams, and is not sent. Where to run twice does no harm, make it without
// this option, and make it again if it fails.
//
// Nobody else gets the answer: a peer that has proved who it is, by a Subject of [Access].Accept or
// a TLS certificate, has keys of its own, and without such a proof the key, which nobody can guess,
// is one.
func WithDurable() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.durable = true }, 0}
}

// WithIdempotencyKey is WithDurable with a key of the application's, by which it can make the same
// call once more itself: with the error of the first attempt that may have run, on another
// Connection, after a restart. As long as the peer remembers the call (see [WithDurableAnswers]) it
// is run once; the same key with another function, other parameters or another value codec is
// refused with ErrBadParams.
// The key has 1 to 64 bytes; a caller that proves to the peer who it is may choose any, and one
// that does not needs 16 that nobody can guess, such as those of crypto/rand. It is not to be
// changed. On a [Session] the call is sent once.
func WithIdempotencyKey(key []byte) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.durable, c.key = true, key }, 0}
}
