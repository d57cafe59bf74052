package asterisque

import (
	"crypto/tls"
	"log/slog"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Option sets one property of a [Node], or several that belong together, by a struct. Of such a
// struct, a field that is zero leaves what an earlier option has set, or else the default. A
// negative number stands for none: no bound, or nothing of the kind; fields that say nothing of
// that need a positive one. A duration that is too short for any purpose, as a number without a
// unit is, does not fit: below 10 ms in [Timeouts], and below 1 ms for Timeouts.Drain, Resume.For
// and DurableAnswers.For. Of values that do not fit, [Node.Check] tells.
type Option func(*config)

// WithID names the node to its peers, for logs and statistics; at most 64 bytes, empty by default.
// It proves nothing.
func WithID(id string) Option { return func(c *config) { c.id = id } }

// WithService offers svc to every peer. By default a node offers nothing, and only calls. Functions
// are registered at svc before the node dials, accepts or listens for the first time.
func WithService(svc *Service) Option {
	return func(c *config) { c.service, c.set.noService = svc, svc == nil }
}

// WithLogger logs what happens to sessions: at level Info their begin and end, at Warn violations
// by peers, at Error code of the application that panics, or ends its goroutine, with its stack. By
// default nothing is logged. What is logged is bounded, so that peers cannot fill a disk: see
// [Node.Logger]. A panic of its handler ends nothing.
func WithLogger(log *slog.Logger) Option {
	return func(c *config) { c.log, c.set.noLogger = log, log == nil }
}

// WithHooks lets h know what becomes of sessions.
func WithHooks(h Hooks) Option { return func(c *config) { c.hooks.add(h) } }

// WithMadeInterceptors puts interceptors around all calls that the node makes, the first one
// outermost: see [Interceptor] for who else may stand around them.
func WithMadeInterceptors(around ...Interceptor) Option {
	return func(c *config) { c.around = append(c.around, around...) }
}

// WithServedInterceptors puts interceptors around all calls that the node serves, the first one
// outermost: see [Interceptor] for who else may stand around them.
func WithServedInterceptors(around ...Interceptor) Option {
	return func(c *config) { c.aroundServed = append(c.aroundServed, around...) }
}

// WithCodecs sets the value codecs of the node in the order of its preference; the dialling side's
// order decides. The default is CBOR, JSON, Raw.
func WithCodecs(codecs ...codec.Values) Option { return func(c *config) { c.codecs = codecs } }

// WithTLS sets the TLS configuration of the tls:// scheme, for dialling and listening. It is
// cloned.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithReusePort lets [Node.ListenAndServe] listen at a TCP port at which another process listens
// that does the same, so that a new process begins before the old one ends: ReusePort of
// [wire.Options] says what becomes of connections meanwhile, and where that works. A socket that is
// handed over, as by [wire.Inherited], goes to [Node.Serve] and needs no option.
func WithReusePort() Option { return func(c *config) { c.reusePort = true } }

// WithCallWindow sets how many calls of a function this side may have made to one peer that are not
// answered yet. Further ones wait on this side, by priority ([WithPriority]) and then in the order
// in which they came, and hold up no other function. The wait ends with the context of the call.
// See [Session.Outstanding]. By default there is no such window.
func WithCallWindow(function uint16, calls int) Option {
	return func(c *config) {
		if c.windows == nil {
			c.windows = make(map[uint16]int)
		}
		c.windows[function] = calls
	}
}

// WithPrivateErrors keeps the texts of errors that handlers return, or abort a pipe with, from the
// peers, unless they are an *[Abort]. Of any other error the peer gets "internal error, id
// 1a2b3c4d", with code Failed, or Canceled or Expired if the error is one of a context. The log has
// the same id, the function and the text at level Warn, for as many errors as are logged
// ([WithLogger]). By default the text crosses, as it does with other libraries for remote calls.
func WithPrivateErrors() Option { return func(c *config) { c.private = true } }

// newConfig returns what options say, and what they leave to the defaults.
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
		expansion:  expansion{times: 32, plus: 64 << 10},
		halfOpen:   1024,
		sessions:   100_000,
		perAddress: 10_000,
		highest:    priority.Max,
		stall:      time.Minute,
		handshake:  5 * time.Second,

		pingInterval: 15 * time.Second,
		writeTimeout: 5 * time.Minute,
		budget:       defaultBudget(),
		remember:     5 * time.Minute,
		remembered:   limits.Amount{Messages: 64 << 10, Bytes: 64 << 20},
		memoryShare:  1. / ownersWithin,
	}
	var m misfits
	for i, o := range opts {
		if m.unless(o != nil, "option %d of %d is nil", i+1, len(opts)) {
			o(&c)
		}
	}
	c.complete()
	c.check(&m)
	return c, m.asError()
}

// setField lets the field of a struct of options count, unless it is zero.
func setField[T comparable](to *T, field T) {
	var zero T
	if field != zero {
		*to = field
	}
}

// setBound lets a field count of which a negative value stands for none, which is 0 within.
func setBound[T ~int | ~int64 | ~float64](to *T, field T) {
	if field < 0 {
		*to = 0
	} else {
		setField(to, field)
	}
}
