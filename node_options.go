package asterisque

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Option sets one property of a [Node].
type Option func(*config)

// WithID names the node to its peers, for logs and statistics; at most 64 bytes, empty by default.
// It proves nothing.
func WithID(id string) Option { return func(c *config) { c.id = id } }

// WithService offers svc to every peer. By default a node offers nothing, and only calls. Functions
// are registered at svc before the node dials, accepts or listens for the first time.
func WithService(svc *Service) Option {
	return func(c *config) { c.service, c.set.noService = svc, svc == nil }
}

// WithAccept asks accept about every peer that connects, after its handshake has arrived and before
// it is answered: until then it can call nothing, and has cost one small frame. What accept returns
// is what this peer gets, nil being what the node has for all. An error refuses the peer. An
// *[Abort] it gets as it is: ErrUnauthorized.Withf("…") turns it away for good. Of any other error,
// such as that of a database that does not answer, it gets ErrUnavailable with an id, and the
// node's log has the same id and the text ([WithLogger]). A peer proves who it is by a TLS
// certificate ([Peer.Certificate]; ask for one with ClientAuth of [WithTLS]) or by a credential
// (Peer.Credential). accept may be called concurrently; its context ends with the handshake
// timeout. It is asked again when a session is to be resumed: see [WithResume].
//
// Each call of accept has a goroutine of its own, and nobody waits for it longer than its context:
// it may block, and close the node. At most as many as [WithHalfOpen] says have not returned; then
// further peers are refused with ErrOverloaded. A panic refuses that peer with ErrUnavailable.
func WithAccept(accept func(context.Context, Peer) (*Grant, error)) Option {
	return func(c *config) { c.accept = accept }
}

// WithOnSession calls f with every session when it begins, whichever side dialled.
//
// Callbacks that only observe, this one and those of [WithOnState] and [WithDropReports], run on a
// goroutine that exists while there is something to report of their session, one after the other
// and in order. They may block, and use or close the session, which may have gone on meanwhile, and
// may have ended. One that never returns keeps its goroutine and its session for good, which is not
// bounded: let it end with Session.Done. A panic is logged. Nobody waits for them: when 16,384
// reports of a session wait, further ones are only counted, and logged, but the last state of each
// direction is told in any case.
func WithOnSession(f func(*Session)) Option { return func(c *config) { c.onSession = f } }

// WithCredential shows every peer that this side dials what credential returns, at most 4,096
// bytes, in the handshake. It is asked after TLS has proved who the peer is. Over a wire without
// TLS it is an error, here and on the other side, unless WithPlainCredentials allows it.
//
// Each call of credential has a goroutine of its own, at most 1,024 at once, and nobody waits for
// it longer than its context. A panic fails that handshake with ErrUnavailable.
func WithCredential(credential func(ctx context.Context, p Peer) ([]byte, error)) Option {
	return func(c *config) { c.credential = credential }
}

// WithPlainCredentials lets credentials be shown, and accepted, over wires without TLS: fit for
// Unix sockets and wires within a program, and for networks where nobody listens. It lets sessions
// be resumed over any wire, too: see [WithResume].
func WithPlainCredentials() Option { return func(c *config) { c.plainCredentials = true } }

// WithOutlivedCertificates lets sessions go on when the certificate of their peer expires. By
// default they end then, with ErrUnauthorized, unless the peer has shown a newer one meanwhile, on
// resuming the session.
func WithOutlivedCertificates() Option { return func(c *config) { c.outliveCertificates = true } }

// WithHalfOpen sets how many connections may be there at once that carry no session yet, from their
// first packet on: before TLS, HTTP or a transport with many wires on one connection, and until the
// handshake is over or the connection is closed, with one deadline for all of that
// ([WithHandshakeTimeout]). When there are more, the address that has most of them gives its oldest
// up, which is cut off. 1,024 by default; 0 is any number. Each may cost 12 KiB, while TLS is being
// set up 50, and with smux 220. With smux and QUIC the connection has a place, and each Wire on it
// that waits, so 2 is the least there. No more calls of the function of [WithAccept] run at once.
func WithHalfOpen(connections int) Option { return func(c *config) { c.halfOpen = connections } }

// WithSessions sets how many sessions peers may have with the node that have connected to it, over
// [Node.Serve] and [Node.Accept]; further connections are closed at once, and told ErrOverloaded
// where that needs no wait. 100,000 by default; 0 is any number. Sessions that are away are bounded
// as said at [WithResume]; with that, this bound and the next let everybody say first which session
// it goes on with.
func WithSessions(n int) Option { return func(c *config) { c.sessions = n } }

// WithSessionsPerAddress sets the same for one address of a network, of IPv6 one /64, handshakes
// included. The default is 10,000, as many agents may sit behind one router, and does not hold for
// loopback addresses: a proxy on this machine may speak for everybody. What is set holds for these
// too; wires that do not cross a network have no such bound. 0 is any number.
func WithSessionsPerAddress(sessions int) Option {
	return func(c *config) { c.perAddress, c.set.perAddress = sessions, true }
}

// WithLogger logs what happens to sessions: at level Info their begin and end, at Warn violations
// by peers, at Error code of the application that panics, or ends its goroutine, with its stack. By
// default nothing is logged. What is logged is bounded, so that peers cannot fill a disk: see
// [Node.Logger]. A panic of its handler ends nothing.
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithCodecs sets the value codecs of the node in the order of its preference; the dialling side's
// order decides. The default is CBOR, JSON, Raw.
func WithCodecs(codecs ...codec.Values) Option { return func(c *config) { c.codecs = codecs } }

// WithTLS sets the TLS configuration of the tls:// scheme, for dialling and listening. It is
// cloned.
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
// waits for it. 1 MiB by default, at most 4 GiB - 1. With 0 there are no windows, and
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

// WithOnState calls f when the state of a direction of a session changes: each change once, in
// their order. See [WithOnSession] for what f may do. States are described in package limits.
func WithOnState(f func(s *Session, d Direction, state limits.State)) Option {
	return func(c *config) { c.onState = f }
}

// WithDropReports calls f for each call and each Block that this side has accepted for sending and
// that was dropped before it left, with the reason. What is dropped on the other side, its
// application learns: see [pipe.Block]. f runs concurrently with itself for different sessions; see
// [WithOnSession] for what it may do.
func WithDropReports(f func(*Session, Drop)) Option { return func(c *config) { c.onDrop = f } }

// WithStallTimeout sets how long a session may stand at its inbound soft limit without the
// application taking a single message, before it ends with ErrStalled. One minute by default.
func WithStallTimeout(d time.Duration) Option { return func(c *config) { c.stall = d } }

// WithLowerShare sets which part of what leaves a session belongs to lower priorities while higher
// ones have something to send, so that they move a little: 0.05, the default, is one byte in
// twenty. 0 is strict: they wait. At most 0.5.
func WithLowerShare(share float64) Option { return func(c *config) { c.share = share } }

// WithMaxPriority sets the highest priority that is granted to peers: their calls that ask for more
// are run, and answered, with this one. By default there is no cap.
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
// Workers are lent to calls within calls as for WithWorkers, to those of one peer as many as are
// left of twice that for all of them. When workers are short, peers have their turn one after the
// other, and so have the sessions of each: peers are told apart as for [WithMemoryShare].
func WithNodeWorkers(n int) Option { return func(c *config) { c.nodeWorkers = n } }

// WithNodeBudget sets how many bytes the node may hold for all its peers together: what waits in
// either direction, what running calls hold, remembered answers, and 16 KiB for each session. From
// half of it on the windows of streams shrink to what is guaranteed. Above it sessions and calls of
// the peers that hold most are refused, with ErrOverloaded; those of peers that hold less than
// their share begin and go on, and so does everything that has begun. Above nine eighths no session
// begins. A peer has one share, however many sessions it has: peers are told apart as for
// [WithMemoryShare]. The default is a quarter of GOMEMLIMIT, if that is set, or else of the
// machine's memory, or of 4 GiB where that is not known. 0 is any number.
//
// It is no wall: what peers were promised before may still come, up to the inbound soft limit of
// each session ([WithInboundLimits]).
func WithNodeBudget(bytes int) Option { return func(c *config) { c.budget = bytes } }

// WithMaxWaiting refuses calls of a peer with ErrOverloaded while so many of its session wait to be
// run, or rather the least urgent of them, the latest first, with an advice when to try again: see
// [RetryAfter] and [Retry]. It has to be below what the peer has room for, some 14,000 calls by
// default, to have an effect. By default, 0, no call is refused for that: further ones wait at the
// peer.
func WithMaxWaiting(calls int) Option { return func(c *config) { c.maxWaiting = calls } }

// WithCallWindow sets how many calls of a function this side may have made to one peer that are not
// answered yet. Further ones wait on this side, in their order, and hold up no other function. The
// wait ends with the context of the call. See [WithFront] and [Session.Outstanding]. By default
// there is no such window.
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
// hearing anything the peer is lost, with ErrUnavailable: 15 and 45 seconds by default. Any byte
// that arrives is a sign of life. A message that has begun to arrive has to go on besides: it may
// take the timeout and a second for each 16 KiB, and then the peer is lost, too.
//
// What the peer announces can only make this side send Pings sooner: its interval if that is
// shorter, and a third of its timeout, but not more than one each second. A peer whose timeout is
// below 3 seconds has to send Pings itself to hear often enough. A peer that sends no Pings answers
// those of this side, and is watched like any other, unless it speaks a protocol that has none
// ([wire.Windowless]): then neither side sends any, and its silence means nothing.
//
// A side that does not read, because of its soft limit or [Session.Pause], does not give its peer
// up for being silent. At its soft limit, while the application takes nothing, it sends Pings more
// often, and so finds out within seconds if the peer has closed the Wire: an eighth of the
// interval, or a second if that is longer, lies between them.
//
// An interval of 0 turns the Pings of this side off, but for one each five seconds at the soft
// limit while the application takes nothing, and then no peer is lost for its silence. The peer may
// watch this side all the same: a session that is paused for longer than the peer's timeout is lost
// there if it sends no Pings. For messages that have begun to arrive the default timeout holds
// then.
func WithPing(interval, timeout time.Duration) Option {
	return func(c *config) { c.pingInterval, c.pingTimeout = interval, timeout }
}

// WithWriteTimeout sets for how long a write to the Wire may stand still, with not one byte taken,
// before the peer is lost, with ErrUnavailable: 5 minutes by default, whatever the peer announces,
// and without Pings as well. A write that has begun has to go on besides: what is given to the Wire
// at once, 64 KiB or one message that is larger, may take so long and a second for each 16 KiB. A
// peer that does not read because it is at its limits, or was paused, for longer than that is given
// up although it may live.
func WithWriteTimeout(d time.Duration) Option { return func(c *config) { c.writeTimeout = d } }

// WithResume lets sessions outlive their Wire for up to d, if the peer's node has this option as
// well and connects by [Node.Connect]: when the Wire is lost, calls and streams wait until the peer
// is back over another one, and go on with nothing lost, doubled or reordered. What was sent is
// kept until the peer acknowledges it, and counts as outbound until then (see
// [WithOutboundLimits]). The default, 0, is off, and costs nothing.
//
// A secret in the handshake entitles to a resume, another one each time. So the wire has to be
// private ([wire.IsPrivate]): over one that is not, connecting, serving and accepting such peers
// fail with ErrUnauthorized, unless [WithPlainCredentials] allows it. [WithAccept] is asked at each
// resume: another Subject has a session of its own, what is granted holds from then on, and a
// refusal ends the session, unless it may pass: ErrUnavailable, which is also any error but an
// *[Abort], or ErrOverloaded.
//
// Sessions that wait for peers which had connected to this node are at most a quarter as many as
// [WithSessions] says, and of one peer as many as [WithSessionsPerAddress] says, loopback or not;
// they hold at most a quarter of [WithNodeBudget], and those of one peer an eighth. Beyond that the
// oldest one ends of the peer that has most. What is sent again for one session is at most 16 MiB a
// second, 64 MiB at once; a peer that comes back sooner waits.
func WithResume(d time.Duration) Option { return func(c *config) { c.resumeFor = d } }

// WithRepository sets where the node keeps the records of sessions that may be resumed, instead of
// its memory.
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

// WithMemoryShare sets which part of [WithMemory] the durable calls of one peer may use, over all
// its sessions, above 0 and at most 1; an eighth by default. Peers are told apart by the Subject
// that [WithAccept] grants, else by their TLS certificates, else by their addresses.
func WithMemoryShare(share float64) Option { return func(c *config) { c.memoryShare = share } }

// WithHandshakeTimeout sets how long a peer may take to complete the handshake, 5 seconds by
// default.
func WithHandshakeTimeout(d time.Duration) Option { return func(c *config) { c.handshake = d } }
