package asterisque

import (
	"crypto/tls"
	"log/slog"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/idempotency"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Option sets one property of a [Node], or several related ones, by a struct. A zero field of such
// a struct keeps the value of an earlier option, or else the default. A negative number removes a
// bound or disables a feature; fields that do not document this must be positive. A duration too
// short for any purpose, such as a number without a unit, is invalid: below 10 ms in [Timeouts],
// and below 1 ms for Timeouts.Drain, Resume.For and DurableAnswers.For. [Node.Check] reports
// invalid options.
type Option func(*config)

// WithID names the node to its peers, for logs and statistics; at most 64 bytes, empty by default.
// The name proves nothing.
func WithID(id string) Option { return func(c *config) { c.id = id } }

// WithService offers svc to every peer. By default a node offers no functions and only makes calls.
// Functions are registered at svc before the node first dials, accepts or listens.
func WithService(svc *Service) Option {
	return func(c *config) { c.service, c.set.noService = svc, svc == nil }
}

// WithLogger logs events of sessions: at level Info their begin and end, at Warn violations by
// peers, at Error application code that panics or ends its goroutine, with its stack. By default
// the node logs nothing. The volume of the log is bounded, so that peers cannot fill a disk: see
// [Node.Logger]. A panic of the log's handler has no effect on the session.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) { c.log, c.set.noLogger = log, log == nil }
}

// WithHooks adds h to the hooks of the node, which report changes of its sessions.
func WithHooks(h Hooks) Option { return func(c *config) { c.hooks.add(h) } }

// WithOutboundInterceptors wraps all calls that the node makes in interceptors, the first one
// outermost. [Interceptor] lists the other places for interceptors.
func WithOutboundInterceptors(around ...Interceptor) Option {
	return func(c *config) { c.around = append(c.around, around...) }
}

// WithInboundInterceptors wraps all calls that the node serves in interceptors, the first one
// outermost. [Interceptor] lists the other places for interceptors.
func WithInboundInterceptors(around ...Interceptor) Option {
	return func(c *config) { c.aroundServed = append(c.aroundServed, around...) }
}

// WithCodecs sets the value codecs of the node in the order of preference; the order of the
// dialling side decides. The default is CBOR, JSON, Raw.
func WithCodecs(codecs ...codec.Values) Option { return func(c *config) { c.codecs = codecs } }

// WithTLS sets the TLS configuration of the tls:// scheme, for dialling and listening. The
// configuration is cloned.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithReusePort allows [Node.ListenAndServe] to share a TCP port with another process that has the
// same option, so that a new process can start before the old one ends. ReusePort of [wire.Options]
// documents the effect on connections and the supported systems. A socket that is handed over, as
// by [wire.Inherited], goes to [Node.Serve] and needs no option.
func WithReusePort() Option { return func(c *config) { c.reusePort = true } }

// WithMaxOutstanding sets how many calls of a function this side may have outstanding at one peer.
// Further calls wait on this side, by priority ([WithPriority]) and then in order of arrival, and
// do not delay other functions. The wait ends with the context of the call. See
// [Session.Outstanding]. By default there is no such window.
func WithMaxOutstanding(function uint16, calls int) Option {
	return func(c *config) {
		if c.windows == nil {
			c.windows = make(map[uint16]int)
		}
		c.windows[function] = calls
	}
}

// WithPrivateErrors hides the texts of errors from peers that a handler returns, or aborts a pipe
// with, unless the error is an *[Abort]. For any other error the peer receives "internal error, id
// 1a2b3c4d", with code Failed, or with Canceled or Expired if the error is one of a context. The
// log has the same id, the function and the text at level Warn, within the bounds of the log
// ([WithLogger]). By default the peer receives the text, as in other RPC libraries.
func WithPrivateErrors() Option { return func(c *config) { c.private = true } }

// newConfig returns the configuration that opts set, with defaults for the rest.
func newConfig(opts []Option) (config, error) {
	c := config{
		sessionConfig: sessionConfig{
			log:    slog.New(slog.DiscardHandler),
			window: math.MaxInt32,
			share:  0.05,
			drain:  30 * time.Second,
		},
		made:       here(),
		codecs:     []codec.Values{codec.CBOR, codec.JSON, codec.Raw},
		expansion:  values.Expansion{Times: 32, Plus: 64 << 10},
		halfOpen:   1024,
		sessions:   100_000,
		perAddress: 10_000,
		highest:    priority.Max,
		stall:      time.Minute,
		handshake:  5 * time.Second,

		pingInterval: 15 * time.Second,
		writeTimeout: 5 * time.Minute,
		budget:       quota.DefaultBudget(),
		remember:     5 * time.Minute,
		remembered:   limits.Amount{Messages: 64 << 10, Bytes: 64 << 20},
		memoryShare:  1. / idempotency.FullOwners,
	}
	var m optionErrors
	for i, o := range opts {
		if m.require(o != nil, "option %d of %d is nil", i+1, len(opts)) {
			o(&c)
		}
	}
	c.complete()
	c.check(&m)
	return c, m.asError()
}

// setField sets to, unless field is zero.
func setField[T comparable](to *T, field T) {
	var zero T
	if field != zero {
		*to = field
	}
}

// setBound sets to. A negative field removes the bound, which the configuration stores as 0.
func setBound[T ~int | ~int64 | ~float64](to *T, field T) {
	if field < 0 {
		*to = 0
	} else {
		setField(to, field)
	}
}
