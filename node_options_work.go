package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/priority"
)

// Timeouts says for how long a node waits for its peers; see [WithTimeouts]. Time in which this
// process does not run counts for none of Handshake, Silence, Write and Stall, be it stopped, its
// machine suspended or its processors taken by others: what has come meanwhile is read before a
// peer is given up.
type Timeouts struct {
	// Handshake is how long a peer may take to complete the handshake: 5 seconds by default.
	Handshake time.Duration

	// Ping is after how long without sending anything a Ping is sent, 15 seconds by default, and
	// Silence after how long without hearing anything the peer is lost, with ErrUnavailable: three
	// times Ping by default, and at least twice. Any byte that arrives is a sign of life. A message
	// that has begun to arrive has to go on besides: it may take Silence and a second for each
	// 16 KiB, and then the peer is lost, too.
	//
	// What the peer announces can only make this side send Pings sooner: after its Ping if that is
	// shorter, and after a third of its Silence, but not more than one each second. A peer whose
	// Silence is below 3 seconds has to send Pings itself to hear often enough. A peer that sends
	// no Pings answers those of this side, and is watched like any other, unless it speaks a
	// protocol that has none ([wire.Foreign]): then neither side sends any, and its silence means
	// nothing.
	//
	// A side that does not read, because of its soft limit or [Session.Pause], does not give its
	// peer up for being silent. At its soft limit, while the application takes nothing, it sends
	// Pings more often, and so finds out within seconds if the peer has closed the Wire: an eighth
	// of Ping, or a second if that is longer, lies between them.
	//
	// A negative Ping turns the Pings of this side off, but for one each five seconds at the soft
	// limit while the application takes nothing, and then no peer is lost for its silence. The peer
	// may watch this side all the same: a session that is paused for longer than the peer's Silence
	// is lost there if it sends no Pings. For messages that have begun to arrive the default of
	// Silence holds then, 45 seconds.
	Ping, Silence time.Duration

	// Write is for how long a write to the Wire may stand still, with not one byte taken, before
	// the peer is lost, with ErrUnavailable: 5 minutes by default, whatever the peer announces, and
	// without Pings as well. A write that has begun has to go on besides: what is given to the Wire
	// at once, 64 KiB or one message that is larger, may take so long and a second for each 16 KiB.
	// A peer that does not read because it is at its limits, or was paused, for longer than that is
	// given up although it may live.
	Write time.Duration

	// Stall is how long a session may stand at its inbound soft limit without the application
	// taking a single message, before it ends with ErrStalled: one minute by default.
	Stall time.Duration

	// Drain is the most that running calls get to finish when this side shuts a session down, by
	// [Session.Shutdown], [Node.Shutdown] or [Connection.Shutdown], whatever their context says: 30
	// seconds by default. Then they are cut, on both sides, with ErrUnavailable. Negative: they get
	// the time of the context. What the peer shuts down has the time that the peer gives.
	Drain time.Duration
}

// WithTimeouts says for how long the node waits for its peers.
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

// Workers says how many handlers run at once, and how many calls wait for that; see [WithWorkers].
type Workers struct {
	// Session is how many handlers run at once for one session; further calls wait, by priority and
	// then in the order of their arrival. 1,024 by default, or as many as have room for their
	// windows in the inbound limits that are set; 1 runs one after the other. A call whose answer
	// cannot be sent yet counts as one that runs. Calls within calls wait for none of these
	// workers: each is lent one, and so is a call for whose end one of them waits, up to 32 for
	// each worker and at least 256 together, and beyond that refused with ErrOverloaded.
	Session int

	// Node is how many handlers run at once for all sessions together, which then have their turn
	// one after the other. By default, and if it is negative, any number: every session has its own
	// bound. Workers are lent to calls within calls as above, to those of one peer as many as are
	// left of twice that for all of them. When workers are short, peers have their turn one after
	// the other, and so have the sessions of each: peers are told apart as for
	// DurableAnswers.Share.
	Node int

	// Waiting is how many calls of one session may wait to be run: while there are so many, calls
	// are refused with ErrOverloaded, or rather the least urgent of them, the latest first, with an
	// advice when to try again: see [RetryAfter] and [Retry]. It has to be below what the peer has
	// room for, some 14,000 calls by default, to have an effect. By default, and if it is negative,
	// no call is refused for that: further ones wait at the peer.
	Waiting int
}

// WithWorkers says how many handlers run at once, and how many calls wait for that.
func WithWorkers(w Workers) Option {
	return func(c *config) {
		setField(&c.workers, w.Session)
		setBound(&c.nodeWorkers, w.Node)
		setBound(&c.maxWaiting, w.Waiting)
	}
}

// Priorities says what priorities are worth; see [WithPriorities].
type Priorities struct {
	// LowerShare is which part of what leaves a session belongs to lower priorities while higher
	// ones have something to send, so that they move a little: 0.05, the default, is one byte in
	// twenty; at most 0.5. Negative is strict: they wait.
	LowerShare float64

	// Highest is the highest priority that is granted to peers: their calls that ask for more are
	// run, and answered, with this one. nil, the default, is no cap.
	Highest *priority.Priority
}

// WithPriorities says what priorities are worth.
func WithPriorities(p Priorities) Option {
	return func(c *config) {
		setBound(&c.share, p.LowerShare)
		if p.Highest != nil {
			c.highest = *p.Highest
		}
	}
}
