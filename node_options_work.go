package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/priority"
)

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
