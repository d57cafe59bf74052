package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Limits bounds the memory of a node's sessions; see [WithLimits]. The page docs/limits.md of the
// repository explains how the limits depend on each other, and the most that a session holds.
type Limits struct {
	// Inbound bounds the received messages that the application has not taken, for each session.
	// The soft limit covers every byte that a peer may send without asking: by default 6 MiB for
	// calls that wait for a worker, 5 MiB for nested calls, and the rest for Blocks. Running calls
	// may hold the same amount once more: their parameters, and answers that wait to be sent. A
	// peer that keeps to its grants never brings a session to the soft limit. With any other peer
	// the session stops reading at the soft limit, and ends with ErrHardLimit beyond the hard
	// limit.
	//
	// The default soft limit is 32 MiB and 65,536 messages, or eight of the largest messages if
	// that is more; the default hard limit is four times the soft limit. The bytes of a soft limit
	// have a minimum: eight of the largest messages, and eight windows of 1.5 KiB for each worker
	// (Workers.Session). With fewer than one message for each 512 bytes, every message counts for
	// more bytes. Grants do not shrink further below 64 KiB or 64 messages.
	Inbound limits.Limits

	// Outbound bounds the sent messages that have not been given to the Wire, for each session. At
	// the soft limit senders wait, by priority. Answers of handlers wait too, while their workers
	// serve other sessions. One message may pass the soft limit as the last one. Beyond the hard
	// limit, which only Post can reach, the session ends with ErrHardLimit; a message larger than
	// the hard limit is rejected with ErrTooLarge. The default is the default of Inbound.
	Outbound limits.Limits

	// MaxMessage is the largest payload, in bytes, that this side accepts in one message:
	// parameters, result or Block. The handshake announces it to the peer, which rejects larger
	// ones at the sender, with ErrTooLarge. The range is 1 KiB..1 GiB, at most an eighth of the
	// inbound soft limit; the default is 4 MiB. Limits that are not set grow with MaxMessage, and
	// the default of MaxMessage follows limits that are set. The error for an invalid value names a
	// valid one.
	MaxMessage int

	// Window bounds the growth of the window of a stream, in bytes: the amount that a peer may send
	// before the application takes some. Every stream has a small guaranteed window. The window
	// grows while the application keeps up and the path can use it: to 960 KiB, over a long path
	// to twice the bandwidth-delay product, by at most four fifths of the spare part of the inbound
	// soft limit. A Block larger than its window passes when the application waits for it. By
	// default there is no other bound; at most 4 GiB - 1. Negative: there are no windows and no
	// grants. Peers send freely, and the session stops reading at its inbound soft limit.
	Window int

	// Expansion bounds the memory of decoded values.
	Expansion Expansion

	// Budget is the number of bytes that the node may hold for all its peers together: queued
	// messages of both directions, the memory of running calls, remembered answers, and 16 KiB for
	// each session. From half of the budget on, the windows of streams shrink to their guaranteed
	// size. Above the budget, new sessions and calls of the peers that hold most are rejected with
	// ErrOverloaded. Peers that hold less than their share may begin sessions and calls, and all
	// running ones continue. Above nine eighths no session begins. A peer has one share for all its
	// sessions; DurableAnswers.Share documents how peers are identified. The default is a quarter
	// of GOMEMLIMIT, if that is set, or else of the machine's memory, or of 4 GiB if that is
	// unknown. Negative: no bound.
	//
	// The node can exceed the budget: earlier grants to peers remain valid, up to the inbound soft
	// limit of each session.
	Budget int
}

// Expansion bounds the memory of a decoded value, as a multiple of its encoded bytes plus a
// constant. A few bytes may encode a large value: a null in a list of structs is one byte, and
// takes a whole struct. The size is estimated before any memory is allocated. Parameters beyond the
// bound are rejected with ErrBadParams, and their call has not run. Results and elements of streams
// fail with ErrBadResult at a receiving caller, and elements with ErrBadParams at a receiving
// handler.
//
// Decoded parameters count as memory of running calls, so a call waits until they fit; a call that
// never fits runs while no other large one does. Expansion applies to the codecs of this module and
// to each [codec.Weigher]; types that decode themselves have to bound their own memory.
type Expansion struct {
	Times int // 32 by default
	Plus  int // bytes; 64 KiB by default; negative: none
}

// WithLimits bounds the memory of the node's sessions. A zero limits.Limits is the default; a zero
// Amount in any other one means no limit.
func WithLimits(l Limits) Option {
	return func(c *config) {
		if l.Inbound != (limits.Limits{}) {
			c.inbound, c.set.inbound = l.Inbound, true
		}
		if l.Outbound != (limits.Limits{}) {
			c.outbound, c.set.outbound = l.Outbound, true
		}
		setField(&c.maxMessage, l.MaxMessage)
		setBound(&c.window, l.Window)
		setField(&c.expansion.Times, l.Expansion.Times)
		setBound(&c.expansion.Plus, l.Expansion.Plus)
		setBound(&c.budget, l.Budget)
	}
}

// DurableAnswers bounds the memory for answers to durable calls of peers; see [WithDurable] and
// [WithDurableAnswers].
type DurableAnswers struct {
	// For is how long an answer is kept: 5 minutes by default. After the end of its session a
	// durable call runs for the same time, or for its time to live if that is shorter; then its
	// context ends. With Workers.Node at most half of the workers run such calls; beyond that, the
	// context of the call that has been without a session for the longest time ends.
	For time.Duration

	// Calls and Bytes bound the number of remembered calls, and their bytes, 512 besides the key
	// and the answer of each: 65,536 and 64 MiB by default; negative: no bound. At the bound,
	// further durable calls are rejected with ErrOverloaded before they run, and [RetryAfter]
	// returns when the next answer expires. An answer that exceeds the bound is not kept: a
	// repetition of its call fails with ErrOverloaded, and is not [Repeatable], because the call
	// ran.
	Calls, Bytes int

	// Share is the part of Calls and Bytes that the durable calls of one peer may use, over all its
	// sessions: at most 1, and an eighth by default. Peers are identified by the Subject that
	// Access.Accept grants, else by their TLS certificates, else by their addresses.
	Share float64
}

// WithDurableAnswers bounds the memory for answers to durable calls of peers.
func WithDurableAnswers(a DurableAnswers) Option {
	return func(c *config) {
		setField(&c.remember, a.For)
		setBound(&c.remembered.Messages, a.Calls)
		setBound(&c.remembered.Bytes, a.Bytes)
		setField(&c.memoryShare, a.Share)
	}
}

// Timeouts sets how long a node waits for its peers; see [WithTimeouts]. Time in which this process
// does not run does not count for Handshake, Silence, Write, Stall and Drain, whether the process
// is stopped, its machine suspended or its processors busy: messages that have arrived meanwhile
// are read before a peer is considered lost.
type Timeouts struct {
	// Handshake is the time for a peer to complete the handshake: 5 seconds by default.
	Handshake time.Duration

	// Ping is the idle time after which this side sends a Ping, 15 seconds by default. Silence is
	// the time without a received byte after which the peer is considered lost, with
	// ErrUnavailable: three times Ping by default, and at least twice. A message that has begun to
	// arrive has to progress as well: it may take Silence and a second for each 16 KiB, and then
	// the peer is considered lost, too.
	//
	// Announcements of the peer only make this side send Pings sooner: after the peer's Ping if
	// that is shorter, and after a third of the peer's Silence, but at most one each second. A peer
	// with a Silence below 3 seconds has to send Pings itself to hear often enough. A peer that
	// sends no Pings answers those of this side, and the timeout applies to it, unless its protocol
	// has no Pings ([wire.Foreign]): then neither side sends any, and no timeout applies.
	//
	// A side that does not read, because of its soft limit or [Session.StopReading], does not
	// consider its peer lost for its silence. At its soft limit, while the application takes no
	// message, it sends Pings more often, at intervals of an eighth of Ping or one second,
	// whichever is longer. So it detects within seconds that the peer has closed the Wire.
	//
	// A negative Ping disables the Pings of this side, except for one each five seconds at the soft
	// limit while the application takes no message, and no silent peer is considered lost. The peer
	// may still apply its timeout to this side: a session that is paused for longer than the peer's
	// Silence is lost there if it sends no Pings. For messages that have begun to arrive, the
	// default Silence of 45 seconds then applies.
	Ping, Silence time.Duration

	// Write is how long a write to the Wire may make no progress, not even a byte, before the peer
	// is considered lost, with ErrUnavailable: 5 minutes by default, whatever the peer announces,
	// and without Pings as well. A write also has a total bound: one write, of 64 KiB or of one
	// larger message, may take Write and a second for each 16 KiB. A live peer that does not read
	// for longer than that, because it is paused or at its limits, is considered lost too.
	Write time.Duration

	// Stall is how long a session may stay at its inbound soft limit without the application taking
	// a message, before the session ends with ErrStalled: one minute by default.
	Stall time.Duration

	// Drain is the maximum time for running calls to finish when this side shuts down a session by
	// [Session.Shutdown], [Node.Shutdown] or [Connection.Shutdown], even if the context allows
	// more: 30 seconds by default. Then they are cut, on both sides, with ErrUnavailable. Negative:
	// only the context bounds the time. A shutdown by the peer follows the peer's Drain.
	Drain time.Duration
}

// WithTimeouts sets how long the node waits for its peers.
func WithTimeouts(t Timeouts) Option {
	return func(c *config) {
		setField(&c.handshake, t.Handshake)
		setBound(&c.pingInterval, t.Ping)
		setField(&c.pingTimeout, t.Silence)
		setField(&c.writeTimeout, t.Write)
		setField(&c.stall, t.Stall)
		setBound(&c.drain, t.Drain)
	}
}

// Workers bounds the handlers that run at once, and the calls that wait for them; see
// [WithWorkers].
type Workers struct {
	// Session is the number of handlers that run at once for one session; further calls wait, by
	// priority and then in the order of their arrival. The default is 1,024, or as many as have
	// budget for their windows in the inbound limits that are set; 1 runs calls one after the
	// other. A call counts as running while its answer cannot be sent. Nested calls do not wait for
	// these workers: each borrows one, and so does a call that a nested call waits for, up to 32
	// for each worker and at least 256 together. Beyond that they are rejected with ErrOverloaded.
	Session int

	// Node is the number of handlers that run at once for all sessions together. By default, and if
	// it is negative, there is no common bound. Nested calls borrow workers as above; one peer may
	// borrow those that are left of twice that number for all peers. If workers are short, peers
	// take turns, and so do the sessions of each peer; DurableAnswers.Share documents how peers are
	// identified.
	Node int

	// Waiting is the number of calls of one session that may wait for a worker. Beyond it the least
	// urgent call, and among those the latest, is rejected with ErrOverloaded and an advised delay:
	// see [RetryAfter] and [Retry]. To have an effect, Waiting has to be below the number of calls
	// that the peer's budget allows, about 14,000 by default. By default, and if it is negative, no
	// call is rejected for that reason: further calls wait at the peer.
	Waiting int
}

// WithWorkers bounds the handlers that run at once, and the calls that wait for them.
func WithWorkers(w Workers) Option {
	return func(c *config) {
		setField(&c.workers, w.Session)
		setBound(&c.nodeWorkers, w.Node)
		setBound(&c.maxWaiting, w.Waiting)
	}
}

// Priorities configures the effect of priorities; see [WithPriorities].
type Priorities struct {
	// LowerShare is the share of the outbound bytes of a session that lower priorities get while
	// higher ones have messages to send: 0.05, the default, is one byte in twenty; at most 0.5.
	// Negative is strict: lower priorities wait.
	LowerShare float64

	// Highest is the highest priority granted to peers: calls with a higher one are run, and
	// answered, with this one. nil, the default, is no cap.
	Highest *priority.Priority
}

// WithPriorities configures the effect of priorities.
func WithPriorities(p Priorities) Option {
	return func(c *config) {
		setBound(&c.share, p.LowerShare)
		if p.Highest != nil {
			c.highest = *p.Highest
		}
	}
}
