package asterisque

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// Option sets one property of a [Node].
type Option func(*config)

// config is what the options of a node fill in; it does not change after NewNode.
type config struct {
	id         string
	service    *Service
	accept     func(context.Context, Peer) (*Grant, error)
	onSession  func(*Session)
	credential func(context.Context, Peer) ([]byte, error)
	halfOpen   int
	perAddress int
	log        *slog.Logger
	codecs     []codec.Values
	tls        *tls.Config
	expansion  expansion
	maxMessage int  // 0: as there is room for
	window     int  // bytes of the largest window
	windowless bool // there are none
	inbound    limits.Limits
	outbound   limits.Limits
	set        struct{ message, workers, inbound, outbound bool } // whether they were set; others follow from them
	plan       limits.Plan                                        // what peers are promised
	onState    func(*Session, Direction, limits.State)
	onDrop     func(*Session, Drop)
	workers    int // 0: as there is room for
	maxWaiting int
	windows    map[uint16]int
	tracer     Tracer

	nodeWorkers int
	budget      int // bytes; 0: any number

	pingInterval time.Duration
	pingTimeout  time.Duration
	writeTimeout time.Duration
	resumeFor    time.Duration
	repository   Repository

	plainCredentials    bool
	outliveCertificates bool

	remember    time.Duration
	remembered  limits.Amount
	memoryShare float64

	share     float64
	highest   priority.Priority
	stall     time.Duration
	handshake time.Duration
}

func newConfig(opts []Option) (config, error) {
	c := config{
		log:       slog.New(slog.DiscardHandler),
		codecs:    []codec.Values{codec.CBOR, codec.JSON, codec.Raw},
		expansion: expansion{times: 32, plus: 64 << 10},
		window:    1 << 20,
		halfOpen:  1024,
		share:     0.05,
		highest:   priority.Max,
		stall:     time.Minute,
		handshake: 5 * time.Second,

		pingInterval: 15 * time.Second,
		pingTimeout:  defaultTimeout,
		writeTimeout: 5 * time.Minute,
		budget:       defaultBudget(),
		remember:     5 * time.Minute,
		remembered:   limits.Amount{Messages: 64 << 10, Bytes: 64 << 20},
		memoryShare:  1. / ownersWithin,
	}
	for _, o := range opts {
		o(&c)
	}
	if c.service == nil {
		c.service = NewService()
	}
	if c.repository == nil {
		c.repository = NewRepository()
	}
	return c, c.check()
}

// check fills in what follows from other settings, and returns an error that names the option whose value does not fit.
func (c *config) check() (err error) {
	switch {
	case len(c.id) > codec.MaxNode:
		return fmt.Errorf("asterisque: WithID: %d bytes exceed the limit of %d", len(c.id), codec.MaxNode)
	case len(c.codecs) == 0 || len(c.codecs) > codec.MaxCodecs:
		return fmt.Errorf("asterisque: WithCodecs: %d codecs are outside 1..%d", len(c.codecs), codec.MaxCodecs)
	case c.set.message && (c.maxMessage < leastMessage || c.maxMessage > 1<<30):
		return fmt.Errorf("asterisque: WithMaxMessage: %d bytes are outside 1 KiB..1 GiB", c.maxMessage)
	case c.expansion.times < 1:
		return fmt.Errorf("asterisque: WithExpansion: %d times are below 1", c.expansion.times)
	case c.expansion.plus < 0:
		return fmt.Errorf("asterisque: WithExpansion: %d bytes more are negative", c.expansion.plus)
	case c.set.workers && c.workers < 1:
		return fmt.Errorf("asterisque: WithWorkers: %d is below 1", c.workers)
	case c.nodeWorkers < 0:
		return fmt.Errorf("asterisque: WithNodeWorkers: %d is negative", c.nodeWorkers)
	case c.budget < 0:
		return fmt.Errorf("asterisque: WithNodeBudget: %d is negative", c.budget)
	case c.maxWaiting < 0:
		return fmt.Errorf("asterisque: WithMaxWaiting: %d is negative", c.maxWaiting)
	case !(c.share >= 0 && c.share <= 0.5):
		return fmt.Errorf("asterisque: WithLowerShare: %v is outside 0..0.5", c.share)
	case c.halfOpen < 0:
		return fmt.Errorf("asterisque: WithHalfOpen: %d is negative", c.halfOpen)
	case c.perAddress < 0:
		return fmt.Errorf("asterisque: WithSessionsPerAddress: %d is negative", c.perAddress)
	case c.window < 0:
		return fmt.Errorf("asterisque: WithWindow: %d is negative", c.window)
	case uint64(c.window) > pipe.MaxWindow:
		return fmt.Errorf("asterisque: WithWindow: %d is above %d", c.window, uint32(pipe.MaxWindow))
	case c.stall <= 0:
		return fmt.Errorf("asterisque: WithStallTimeout: %v is not positive", c.stall)
	case c.pingInterval < 0 || c.pingInterval > 0 && c.pingTimeout < 2*c.pingInterval:
		return fmt.Errorf("asterisque: WithPing: an interval of %v needs a timeout of at least twice that, not %v", c.pingInterval, c.pingTimeout)
	case c.writeTimeout <= 0:
		return fmt.Errorf("asterisque: WithWriteTimeout: %v is not positive", c.writeTimeout)
	case c.remember <= 0:
		return fmt.Errorf("asterisque: WithMemory: %v is not positive", c.remember)
	case !(c.memoryShare > 0 && c.memoryShare <= 1):
		return fmt.Errorf("asterisque: WithMemoryShare: %v is outside 0..1", c.memoryShare)
	case c.resumeFor < 0:
		return fmt.Errorf("asterisque: WithResume: %v is negative", c.resumeFor)
	case c.handshake <= 0:
		return fmt.Errorf("asterisque: WithHandshakeTimeout: %v is not positive", c.handshake)
	}
	for function, calls := range c.windows {
		if calls < 1 {
			return fmt.Errorf("asterisque: WithCallWindow: %d calls of function %d are below 1", calls, function)
		}
	}
	if c.inbound, err = c.inbound.Check(); err != nil {
		return fmt.Errorf("asterisque: WithInboundLimits: %w", err)
	}
	if c.outbound, err = c.outbound.Check(); err != nil {
		return fmt.Errorf("asterisque: WithOutboundLimits: %w", err)
	}
	return c.fit()
}

// What is there by default, as far as it fits what is set.
const (
	defaultMessage = 4 << 20
	defaultRoom    = 32 << 20
	defaultWorkers = 1024
	leastMessage   = 1 << 10
)

// nestedReserve returns how many calls within calls the node runs for all peers: for two of them what
// either may have.
func (c *config) nestedReserve() int64 {
	workers := c.plan.Workers
	if c.nodeWorkers > 0 {
		workers = c.nodeWorkers
	}
	return 2 * int64(limits.NestedCalls(workers))
}

// limitsFor returns the default limits for messages of a size: at least eight of them have room.
func limitsFor(maxMessage int) limits.Limits {
	soft := limits.Amount{Bytes: min(max(defaultRoom, 8*maxMessage), limits.MaxBytes/4)}
	soft.Messages = min(soft.Bytes/limits.LeastOverhead, limits.MaxMessages/4)
	return limits.Limits{
		Soft: soft, Resume: limits.Amount{Messages: soft.Messages / 2, Bytes: soft.Bytes / 2},
		Hard: limits.Amount{Messages: 4 * soft.Messages, Bytes: 4 * soft.Bytes},
	}
}

// fit lets what was not set follow from what was, and returns an error that names the options that do not fit each other.
func (c *config) fit() (err error) {
	if !c.set.inbound {
		c.inbound = limitsFor(c.maxMessage)
	}
	if !c.set.outbound {
		c.outbound = limitsFor(c.maxMessage)
	}
	c.windowless = c.window == 0
	c.plan, err = c.planFor(c.inbound)
	return err
}

// planFor returns what a peer is promised with such inbound limits.
func (c *config) planFor(inbound limits.Limits) (p limits.Plan, err error) {
	soft, maxMessage, workers := inbound.Soft, c.maxMessage, c.workers
	bytes := soft.Bytes
	if bytes == 0 {
		bytes = max(defaultRoom, 8*maxMessage)
	}
	if maxMessage == 0 {
		maxMessage = defaultMessage
		if !c.windowless {
			maxMessage = max(leastMessage, min(maxMessage, max(bytes, limits.LeastRoom)/8))
		}
	}
	if workers == 0 {
		workers = defaultWorkers
		if !c.windowless {
			messages := soft.Messages
			if messages == 0 {
				messages = bytes / limits.LeastOverhead
			}
			workers = min(workers, limits.MostWorkers(bytes, messages))
		}
	}
	if c.windowless { // nothing is promised
		return limits.Plan{Room: bytes, Largest: maxMessage, Workers: workers, NestedCalls: limits.NestedCalls(workers)}, nil
	}
	if p, err = limits.NewPlan(soft, maxMessage, workers); err != nil {
		return p, fmt.Errorf("asterisque: WithMaxMessage, WithWorkers and WithInboundLimits do not fit each other: %w", err)
	}
	return p, nil
}

// WithID names the node to its peers, for logs and statistics; at most 64 bytes, empty by default. It proves nothing.
func WithID(id string) Option { return func(c *config) { c.id = id } }

// WithService offers svc to every peer. By default a node offers nothing, and only calls.
func WithService(svc *Service) Option { return func(c *config) { c.service = svc } }

// WithAccept asks accept about every peer that connects, after its handshake has arrived and before it is answered: until then it can call nothing, and has cost one small frame. What accept
// returns is what this peer gets, nil being what the node has for all. An error refuses the peer, which gets it as ErrUnauthorized unless it is an *Abort with a code of its own. A peer
// proves who it is by a TLS certificate ([Peer.Certificate]; ask for one with ClientAuth of [WithTLS]) or by a credential (Peer.Credential). accept may be called concurrently; its context ends with
// the handshake timeout. A session that is resumed is asked about again.
func WithAccept(accept func(context.Context, Peer) (*Grant, error)) Option {
	return func(c *config) { c.accept = accept }
}

// WithOnSession calls f with every session when it begins, whichever side dialled. f must not block; calls may be made from another goroutine.
func WithOnSession(f func(*Session)) Option { return func(c *config) { c.onSession = f } }

// WithCredential shows every peer that this side dials what credential returns, at most 4,096 bytes, in the handshake. It is asked after TLS has proved who the peer is. Over a wire without
// TLS it is an error, here and on the other side, unless WithPlainCredentials allows it.
func WithCredential(credential func(ctx context.Context, p Peer) ([]byte, error)) Option {
	return func(c *config) { c.credential = credential }
}

// WithPlainCredentials lets credentials be shown, and accepted, over wires without TLS: fit for Unix sockets and wires within a program, and for networks where nobody listens.
func WithPlainCredentials() Option { return func(c *config) { c.plainCredentials = true } }

// WithOutlivedCertificates lets sessions go on when the certificate of their peer expires. By default they end then, with ErrUnauthorized, unless the peer has shown a newer one meanwhile, on resuming the
// session.
func WithOutlivedCertificates() Option { return func(c *config) { c.outliveCertificates = true } }

// WithHalfOpen sets how many peers may be in their handshake with [Node.Serve] at once; when there are more, the one that began first is cut off. 1,024 by default; 0 is any number. Each may cost a
// few KiB, for at most the time of [WithHandshakeTimeout].
func WithHalfOpen(peers int) Option { return func(c *config) { c.halfOpen = peers } }

// WithSessionsPerAddress sets how many sessions, and handshakes, [Node.Serve] allows from one address of a network; further ones are refused with ErrOverloaded. 0, the default, is any
// number.
func WithSessionsPerAddress(sessions int) Option { return func(c *config) { c.perAddress = sessions } }

// WithLogger logs what happens to sessions: at level Info their begin and end, at Warn violations by peers, at Error panics of handlers with their stack. By default
// nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithCodecs sets the value codecs of the node in the order of its preference; the dialling side's order decides. The default is CBOR, JSON, Raw.
func WithCodecs(codecs ...codec.Values) Option { return func(c *config) { c.codecs = codecs } }

// WithTLS sets the TLS configuration of the tls:// scheme, for dialling and listening. It is cloned.
func WithTLS(cfg *tls.Config) Option { return func(c *config) { c.tls = cfg } }

// WithMaxMessage sets the largest payload, in bytes, that this side accepts in one message:
// parameters, result or Block. The peer learns it in the handshake, and refuses to send more, with
// ErrTooLarge. 1 KiB..1 GiB, 4 MiB by default, and no more than an eighth of the inbound soft
// limit: limits that are not set grow with it, and with limits that are set, the default follows
// them. What is set and does not fit is an error, which says what would.
func WithMaxMessage(bytes int) Option {
	return func(c *config) { c.maxMessage, c.set.message = bytes, true }
}

// WithExpansion bounds what values that arrive become in memory when they are decoded: so many
// times the bytes that have come, and so many bytes more. A few bytes may stand for much: a null in
// a list of structs is one byte, and takes a whole struct. It is estimated before anything is
// allocated. Parameters beyond the bound are refused with ErrBadParams, and have not run. Results
// and elements of streams are ErrBadResult at whoever receives them. What parameters become counts
// as what running calls hold, and so such a call waits until it fits; one that never does runs
// while no other large one does. times is at least 1, plus at least 0; the default is 32 and
// 64 KiB. It is for the codecs of this module, and for others that are a [codec.Weigher]; what
// types that decode themselves make of their bytes is theirs to bound.
func WithExpansion(times, plus int) Option {
	return func(c *config) { c.expansion = expansion{times, plus} }
}

// WithWindow sets how far the window of a stream may grow, in bytes: what a peer may send before
// the application takes some. Every stream has a small window that is guaranteed. It grows while
// the application keeps up and the path has use for more, by at most an eighth of what is spare of
// the inbound soft limit. A Block that does not fit into its window passes when the application
// waits for it. 1 MiB by default, at most [pipe.MaxWindow]. With 0 there are no windows, and
// peers are promised nothing: they send what they like, and the session stops reading at its
// inbound soft limit.
func WithWindow(most int) Option { return func(c *config) { c.window = most } }

// WithInboundLimits bounds what has been received and not yet been taken by the application, for
// each session. What the peer may send without asking has its place in the soft limit: a quarter
// for calls that wait for a worker, a quarter for calls within calls, and half for Blocks. Running
// calls may hold as much once more: their parameters, and answers that wait to be sent. A peer that
// keeps to what it was promised never brings a session to its soft limit. With another one the
// session stops reading there, and beyond the hard limit it ends with ErrHardLimit.
//
// The default soft limit is 32 MiB and 65,536 messages, or eight of the largest messages if that is
// more ([WithMaxMessage]); the hard limit is four times that. Of a soft limit that is set, the
// bytes matter: it needs eight of the largest messages, and an eighth of it a window of 1.5 KiB for
// each worker ([WithWorkers]). With fewer than one message for each 512 bytes, every message counts
// for more. Below 64 KiB or 64 messages promises do not follow. The page docs/limits.md of the
// repository says how all these belong together, and what a session holds at most.
func WithInboundLimits(l limits.Limits) Option {
	return func(c *config) { c.inbound, c.set.inbound = l, true }
}

// WithOutboundLimits bounds what has been sent and not yet been given to the Wire, for each
// session. At the soft limit senders wait, by priority, and so do the answers of handlers, whose
// workers go on to other sessions. One message may pass it as the last one. Beyond the hard limit,
// where only Post can get, the session ends with ErrHardLimit; what exceeds that by itself is
// refused with ErrTooLarge. The default is that of WithInboundLimits.
func WithOutboundLimits(l limits.Limits) Option {
	return func(c *config) { c.outbound, c.set.outbound = l, true }
}

// WithOnState calls f when the state of a direction of a session changes: each change once, in their order. f runs on the goroutine that caused the change; it
// must neither block nor call the session, beyond its Stats. States are described in package limits.
func WithOnState(f func(s *Session, d Direction, state limits.State)) Option {
	return func(c *config) { c.onState = f }
}

// WithDropReports calls f for each call and each Block that this side has accepted for sending and that was dropped before it left, with the reason. What is dropped on
// the other side, its application learns: see [pipe.Block]. f runs on any goroutine, concurrently with itself for different sessions; it must neither block nor call the session.
func WithDropReports(f func(*Session, Drop)) Option { return func(c *config) { c.onDrop = f } }

// WithStallTimeout sets how long a session may stand at its inbound soft limit without the application taking a single message, before it ends with ErrStalled. One
// minute by default.
func WithStallTimeout(d time.Duration) Option { return func(c *config) { c.stall = d } }

// WithLowerShare sets which part of what leaves a session belongs to lower priorities while higher ones have something to send, so that they move a little: 0.05, the
// default, is one byte in twenty. 0 is strict: they wait. At most 0.5.
func WithLowerShare(share float64) Option { return func(c *config) { c.share = share } }

// WithMaxPriority sets the highest priority that is granted to peers: their calls that ask for more are run, and answered, with this one. By default there is
// no cap.
func WithMaxPriority(p priority.Priority) Option { return func(c *config) { c.highest = p } }

// WithWorkers sets how many handlers run at once for one session; further calls wait, by priority
// and then in the order of their arrival. 1,024 by default, or as many as have room for their
// windows in the inbound limits that are set; 1 runs one after the other. A call whose answer
// cannot be sent yet counts as one that runs. Calls within calls wait for none of these workers:
// each is lent one, up to 32 for each worker and at least 256, and beyond that refused with
// ErrOverloaded.
func WithWorkers(n int) Option { return func(c *config) { c.workers, c.set.workers = n, true } }

// WithNodeWorkers sets how many handlers run at once for all sessions together, which then have
// their turn one after the other. 0, the default, is any number: every session has its own bound.
// Workers are lent to calls within calls as for WithWorkers, to those of one peer as many as are left
// of twice that for all of them. When workers are short, peers have their turn one after the other, and
// so have the sessions of each: peers are told apart as for [WithMemoryShare].
func WithNodeWorkers(n int) Option { return func(c *config) { c.nodeWorkers = n } }

// WithNodeBudget sets how many bytes the node may hold for all its peers together: what waits in
// either direction, what running calls hold, remembered answers, and 16 KiB for each session. From
// half of it on the windows of streams shrink to what is guaranteed. Above it no new session begins,
// and calls of the peers that hold most are refused, with ErrOverloaded; those of peers that hold less
// than their share go on, and so does everything that has begun. A peer has one share, however many
// sessions it has: peers are told apart as for [WithMemoryShare]. The default is a quarter of
// GOMEMLIMIT, if that is set, or else of the machine's memory, or of 4 GiB where that is not known. 0
// is any number.
//
// It is no wall: what peers were promised before may still come, up to the inbound soft limit of each
// session ([WithInboundLimits]).
func WithNodeBudget(bytes int) Option { return func(c *config) { c.budget = bytes } }

// WithMaxWaiting refuses calls of a peer with ErrOverloaded while so many of its session wait to be
// run, or rather the least urgent of them, the latest first, with an advice when to try again: see
// [RetryAfter] and [Retry]. It has to be below what the peer has room for, some 14,000 calls by
// default, to have an effect. By default, 0, no call is refused for that: further ones wait at the
// peer.
func WithMaxWaiting(calls int) Option { return func(c *config) { c.maxWaiting = calls } }

// WithCallWindow sets how many calls of a function this side may have made to one peer that are not answered yet. Further ones wait on this side, in their order, and hold up
// no other function. The wait ends with the context of the call. See [WithFront] and [Session.Outstanding]. By default there is no such window.
func WithCallWindow(function uint16, calls int) Option {
	return func(c *config) {
		if c.windows == nil {
			c.windows = make(map[uint16]int)
		}
		c.windows[function] = calls
	}
}

// WithTracer lets t follow all calls of the node, in both directions. By default nobody does.
func WithTracer(t Tracer) Option { return func(c *config) { c.tracer = t } }

// WithPing sets after how long without sending anything a Ping is sent, and after how long without
// hearing anything the peer is lost, with ErrUnavailable: 15 and 45 seconds by default. Any byte that
// arrives is a sign of life. A message that has begun to arrive has to go on besides: it may take the
// timeout and a second for each 16 KiB, and then the peer is lost, too.
//
// What the peer announces can only make this side send Pings sooner: its interval if that is shorter,
// and a third of its timeout, but not more than one each second. A peer whose timeout is below 3
// seconds has to send Pings itself to hear often enough. A peer that sends no Pings answers those of
// this side, and is watched like any other, unless it speaks a protocol that has none
// ([wire.Windowless]): then neither side sends any, and its silence means nothing.
//
// A side that does not read, because of its soft limit or [Session.Pause], does not give its peer up for
// being silent. At its soft limit, while the application takes nothing, it sends Pings more often, and
// so finds out within seconds if the peer has closed the Wire: an eighth of the interval, or a second
// if that is longer, lies between them.
//
// An interval of 0 turns the Pings of this side off, but for one each five seconds at the soft limit
// while the application takes nothing, and then no peer is lost for its silence. The peer may watch
// this side all the same: a session that is paused for longer than the peer's timeout is lost there if
// it sends no Pings. For messages that have begun to arrive the default timeout holds then.
func WithPing(interval, timeout time.Duration) Option {
	return func(c *config) { c.pingInterval, c.pingTimeout = interval, timeout }
}

// WithWriteTimeout sets for how long a write to the Wire may stand still, with not one byte taken, before
// the peer is lost, with ErrUnavailable: 5 minutes by default, whatever the peer announces, and without
// Pings as well. A write that has begun has to go on besides: what is given to the Wire at once, 64 KiB
// or one message that is larger, may take so long and a second for each 16 KiB. A peer that does not read
// because it is at its limits, or was paused, for longer than that is given up although it may live.
func WithWriteTimeout(d time.Duration) Option { return func(c *config) { c.writeTimeout = d } }

// WithResume lets sessions outlive their Wire for up to d, if the peer's node has this option as well and connects by [Node.Connect]: when the Wire is lost, calls and streams wait until the peer
// is back over another one, and go on with nothing lost, doubled or reordered. What was sent is kept until the peer acknowledges it, and counts as outbound until then (see
// [WithOutboundLimits]). The default, 0, is off, and costs nothing.
func WithResume(d time.Duration) Option { return func(c *config) { c.resumeFor = d } }

// WithRepository sets where the node keeps the records of sessions that may be resumed, instead of its memory.
func WithRepository(r Repository) Option { return func(c *config) { c.repository = r } }

// WithMemory sets for how long the answers to durable calls of peers are remembered (see
// [WithDurable]), and how many calls and how many bytes of them, 0 being any number: by default 5
// minutes, 65,536 calls, 64 MiB. Each peer has a share of that: see [WithMemoryShare]. When it is
// used up, further durable calls are refused with ErrOverloaded before they run, and [RetryAfter]
// says when something will be forgotten. An answer for which there is no room is not kept: a
// repetition of its call fails with ErrOverloaded, and is not [Repeatable], because the call ran.
//
// A durable call whose session has ended runs on for as long, or for its time to live if that is
// shorter; then its context ends. With [WithNodeWorkers] at most half of those do so at once, and
// beyond that the context of the one which has been without a session for the longest time ends.
func WithMemory(d time.Duration, most limits.Amount) Option {
	return func(c *config) { c.remember, c.remembered = d, most }
}

// WithMemoryShare sets which part of [WithMemory] the durable calls of one peer may use, over all its
// sessions, above 0 and at most 1; an eighth by default. Peers are told apart by the Subject that
// [WithAccept] grants, else by their TLS certificates, else by their addresses.
func WithMemoryShare(share float64) Option { return func(c *config) { c.memoryShare = share } }

// WithHandshakeTimeout sets how long a peer may take to complete the handshake, 5 seconds by default.
func WithHandshakeTimeout(d time.Duration) Option { return func(c *config) { c.handshake = d } }

// CallOption sets one property of a call or pipe.
type CallOption struct {
	set   func(*callConfig, int64)
	value int64
}

// callConfig is what the options of a call fill in. Calls without options share one: whoever changes it changes a copy.
type callConfig struct {
	priority priority.Priority
	ttl      time.Duration
	loss     uint8
	front    bool
	failFast bool
	durable  bool
	traced   bool   // the tracer knows of the call
	trace    []byte // what it wants to travel with the call
	key      []byte // of a durable call
	sent     func() // is called when a durable call has been sent
	buffer   []byte // empty; the result may be put into what it has room for
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

// WithPriority ranks the call, its Blocks and its result among the other calls of its session; the higher goes first.
func WithPriority(p priority.Priority) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.priority = priority.Priority(v) }, int64(p)}
}

// WithTTL gives the call this long, from now on: a call that has not begun by then never runs, one that runs has its context end, and the caller gets ErrExpired. A
// deadline of the caller's context does the same; the earlier one counts. Less than a millisecond is rounded up to one.
func WithTTL(d time.Duration) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.ttl = time.Duration(v) }, int64(d)}
}

// WithLoss sets the loss rate, 0..127, of the Blocks that this side sends on the pipe: see [pipe.WithLoss]. Larger values count as 127. The Blocks of the other side have
// the loss rate that it gives them.
func WithLoss(rate uint8) CallOption {
	return CallOption{func(c *callConfig, v int64) { c.loss = uint8(v) }, int64(min(rate, codec.MaxLoss))}
}

// WithFront lets the call wait for the window of its function before all that wait already; see [WithCallWindow].
func WithFront() CallOption { return CallOption{func(c *callConfig, _ int64) { c.front = true }, 0} }

// WithFailFast lets a call on a [Connection] fail at once, with ErrUnavailable, while that is connecting again. By default the call waits, as long as its context and its time to live allow.
func WithFailFast() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.failFast = true }, 0}
}

// WithResultBuffer puts the result into buf, if there is room for it, instead of new memory. It is for results that are bytes as they came: those of [Session.Call], and those of [Func] whose R is []byte
// while the session uses [codec.Raw]. The bytes that buf holds already are overwritten. From the beginning of the call to its end, whatever that is, buf is the library's; so one buffer, and the option, which
// may be made once, serve one caller at a time. It pays from about 1 KiB on; a quarter of the time of a call with a result of 64 KiB goes into new memory.
func WithResultBuffer(buf []byte) CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.buffer = buf[:0] }, 0}
}

// WithDurable lets a call on a [Connection] outlive sessions: it waits while there is none, and goes
// out again on the next one, in the order of the durable calls of the connection, until it is answered
// or its context or time to live ends. One that waits for its answer when the peer shuts the session
// down waits on there, while later ones go to the next session. A key that travels with it lets the peer
// run it once, however often it arrives; the peer remembers the answer for some minutes (see [WithMemory]), in one process:
// a peer that was started anew, or another one at the same address, may run it again. The handler of
// a durable call goes on when its session ends, unless the call was made within another one. At most
// as many durable calls of one peer run at once, over all its sessions, as one session has workers.
//
// Nobody else gets the answer: a peer that has proved who it is, by a Subject of [WithAccept] or a TLS
// certificate, has keys of its own, and without such a proof the key, which nobody can guess, is one.
func WithDurable() CallOption {
	return CallOption{func(c *callConfig, _ int64) { c.durable = true }, 0}
}
