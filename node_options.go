package asterisque

import (
	"context"
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
	"github.com/asterisque-go/asterisque/wire"
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

// Access controls the admission of peers; see [WithAccess].
type Access struct {
	// Accept decides on every peer that connects, after its handshake has arrived and before the
	// answer: until then the peer can call nothing, and has cost one small frame. The returned
	// Grant holds for this peer; nil, as without Accept, is the node's default for all peers. A
	// peer proves its identity by a TLS certificate ([Peer.Certificate]; request one with
	// ClientAuth of [WithTLS]) or by a credential (Peer.Credential).
	//
	// An error rejects the peer. The peer receives an *[Abort] unchanged:
	// ErrUnauthorized.Withf("…") rejects it for good. For any other error, such as a failure of a
	// database, the peer receives ErrUnavailable with an id, and the node's log has the same id and
	// the text ([WithLogger]). A panic rejects the peer with ErrUnavailable.
	//
	// Accept may be called concurrently; its context expires after Timeouts.Handshake. Each call
	// runs on its own goroutine, and the handshake does not wait longer than the context: Accept
	// may block, and close the node. At most Admission.HalfOpen calls run at once; further peers
	// are rejected with ErrOverloaded. Accept is called again when a session is resumed: see
	// [WithResume].
	Accept func(context.Context, Peer) (*Grant, error)

	// Credential returns the credential, at most 4,096 bytes, that the handshake presents to every
	// peer that this side dials; by default none. It is called after TLS has authenticated the
	// peer. Over a wire without TLS a credential is an error, on both sides, unless
	// PlainCredentials allows it.
	//
	// Each call of Credential runs on its own goroutine, at most 1,024 at once, and the handshake
	// does not wait longer than the context. A panic fails the handshake with ErrUnavailable.
	Credential func(ctx context.Context, p Peer) ([]byte, error)

	// PlainCredentials allows credentials over wires without TLS, sent and received. It suits Unix
	// sockets, wires within a program, and networks without eavesdroppers. It also allows sessions
	// to be resumed over any wire: see [WithResume].
	PlainCredentials bool

	// OutlivedCertificates keeps sessions after the certificate of their peer has expired. By
	// default they end then, with ErrUnauthorized, unless the peer has presented a newer one
	// meanwhile, by resuming the session.
	OutlivedCertificates bool
}

// WithAccess controls the admission of peers. By default every peer may call all functions that the
// node offers.
func WithAccess(a Access) Option {
	return func(c *config) {
		if a.Accept != nil {
			c.accept = a.Accept
		}
		if a.Credential != nil {
			c.credential = a.Credential
		}
		setField(&c.plainCredentials, a.PlainCredentials)
		setField(&c.outliveCertificates, a.OutlivedCertificates)
	}
}

// Admission bounds the number of peers and of handshakes; see [WithAdmission].
type Admission struct {
	// HalfOpen is the number of connections without a session at once. A connection counts from its
	// first packet, before TLS, HTTP or a transport with many wires on one connection, until the
	// handshake is over or the connection is closed; one deadline holds for all of that
	// (Timeouts.Handshake). Above the bound, the oldest connection of the address that has most of
	// them is closed. 1,024 by default; negative: any number.
	//
	// Each connection may cost 12 KiB, during the TLS handshake 50, and with smux 220. With smux
	// and QUIC the connection takes one place, and so does each of its Wires that waits: there 2 is
	// the minimum. HalfOpen also bounds the concurrent calls of Access.Accept. If the process has
	// fewer descriptors (ulimit -n), silent peers can take all of them until their deadline, while
	// other connections wait in the queue of the system: set a lower number then.
	HalfOpen int

	// Sessions is the number of sessions with peers that have connected to the node, over
	// [Node.Serve] and [Node.Accept]. Further connections are closed at once; the peer receives
	// ErrOverloaded if that needs no wait. 100,000 by default; negative: any number. [WithResume]
	// has the bounds for suspended sessions. With WithResume, Sessions and PerAddress are applied
	// after the peer has said which session it resumes.
	Sessions int

	// PerAddress is the same for one network address, of IPv6 one /64, handshakes included. The
	// default is 10,000, as many agents may share one router, and does not apply to loopback
	// addresses, which may belong to a proxy for all peers. A value that is set applies to loopback
	// too. Wires that do not cross a network have no such bound. Negative: any number.
	PerAddress int
}

// WithAdmission bounds the number of peers and of handshakes.
func WithAdmission(a Admission) Option {
	return func(c *config) {
		setBound(&c.halfOpen, a.HalfOpen)
		setBound(&c.sessions, a.Sessions)
		setBound(&c.perAddress, a.PerAddress)
		c.set.perAddress = c.set.perAddress || a.PerAddress != 0
	}
}

// Resume configures how sessions outlive their Wire; see [WithResume].
type Resume struct {
	// For is how long a suspended session waits for its peer. By default, and if For is negative,
	// sessions do not wait, at no cost.
	For time.Duration

	// Records stores the records of resumable sessions; by default in the memory of the node.
	Records Repository

	// Elsewhere allows a peer to resume its session through any of the nodes that share Records,
	// for example nodes behind one load balancer. It is called when a peer resumes a session and
	// the record names another node. It returns a Wire to that node, which has to accept it with
	// [Node.AcceptRelayed]. This node then relays the frames of the session between the two Wires,
	// until either Wire ends or this node shuts down. The relay counts as a session in Admission.
	//
	// A nil Wire with a nil error means that the other node no longer exists: a new session begins
	// here. An error rejects the peer, which retries if the error is temporary, as ErrUnavailable
	// is. The other node calls its Access.Accept for the peer; this node does not. Elsewhere runs
	// on its own goroutine; ctx is that of the handshake. Each node needs its own id
	// ([WithID]). If Elsewhere is nil, sessions are resumed only at their own node.
	Elsewhere func(ctx context.Context, r SessionRecord, p Peer) (wire.Wire, error)
}

// WithResume allows sessions to outlive their Wire for up to r.For, if the peer's node has this
// option as well and connects by [Node.Connect]. When the Wire is lost, calls and streams wait for
// the peer to reconnect, and continue with no message lost, duplicated or reordered. Sent messages
// are kept until the peer acknowledges them, and count as outbound until then (see
// Limits.Outbound).
//
// A secret from the handshake, a new one each time, entitles the peer to resume. The wire therefore
// has to be private ([wire.IsPrivate]): over any other wire, connecting, serving and accepting such
// peers fail with ErrUnauthorized, unless Access.PlainCredentials allows it. Access.Accept is
// called at each resume: a peer with another Subject gets its own session, the new Grant holds from
// then on. A permanent rejection ends the session. A temporary one leaves it suspended:
// ErrUnavailable, ErrOverloaded, or any error that is no *[Abort].
//
// Suspended sessions of peers that had connected to this node number at most a quarter of
// Admission.Sessions, and those of one peer at most Admission.PerAddress, loopback or not. They
// hold at most a quarter of Limits.Budget, and those of one peer an eighth. Beyond that, the node
// ends the oldest session of the peer that holds the most. One session retransmits at most 16 MiB a
// second, 64 MiB at once; a peer that reconnects sooner waits.
func WithResume(r Resume) Option {
	return func(c *config) {
		setBound(&c.resumeFor, r.For)
		if r.Records != nil {
			c.repository = r.Records
		}
		if r.Elsewhere != nil {
			c.elsewhere = r.Elsewhere
		}
	}
}
