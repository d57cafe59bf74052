package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Limits bounds what the sessions of a node take and hold; see [WithLimits]. The page
// docs/limits.md of the repository says how all these belong together, and what a session holds at
// most.
type Limits struct {
	// Inbound bounds what has been received and not yet been taken by the application, for each
	// session. What the peer may send without asking has its place in the soft limit: a quarter for
	// calls that wait for a worker, a quarter for calls within calls, and half for Blocks. Running
	// calls may hold as much once more: their parameters, and answers that wait to be sent. A peer
	// that keeps to what it was promised never brings a session to its soft limit. With another one
	// the session stops reading there, and beyond the hard limit it ends with ErrHardLimit.
	//
	// The default soft limit is 32 MiB and 65,536 messages, or eight of the largest messages if
	// that is more; the hard limit is four times that. Of a soft limit that is set, the bytes
	// matter: it needs eight of the largest messages, and an eighth of it a window of 1.5 KiB for
	// each worker (Workers.Session). With fewer than one message for each 512 bytes, every message
	// counts for more. Below 64 KiB or 64 messages promises do not follow.
	Inbound limits.Limits

	// Outbound bounds what has been sent and not yet been given to the Wire, for each session. At
	// the soft limit senders wait, by priority, and so do the answers of handlers, whose workers go
	// on to other sessions. One message may pass it as the last one. Beyond the hard limit, where
	// only Post can get, the session ends with ErrHardLimit; what exceeds that by itself is refused
	// with ErrTooLarge. The default is that of Inbound.
	Outbound limits.Limits

	// MaxMessage is the largest payload, in bytes, that this side accepts in one message:
	// parameters, result or Block. The peer learns it in the handshake, and refuses to send more,
	// with ErrTooLarge. 1 KiB..1 GiB, 4 MiB by default, and no more than an eighth of the inbound
	// soft limit: limits that are not set grow with it, and with limits that are set, the default
	// follows them. What is set and does not fit is an error, which says what would.
	MaxMessage int

	// Window is how far the window of a stream may grow, in bytes: what a peer may send before the
	// application takes some. Every stream has a small window that is guaranteed. It grows while
	// the application keeps up and the path has use for more: to 1 MiB, by at most an eighth of
	// what is spare of the inbound soft limit, and over a long path to twice what the path holds,
	// by at most four fifths of that. A Block that does not fit into its window passes when the
	// application waits for it. By default there is no other bound; at most 4 GiB - 1. Negative:
	// there are no windows, and peers are promised nothing: they send what they like, and the
	// session stops reading at its inbound soft limit.
	Window int

	// Expansion bounds what values that arrive become in memory when they are decoded.
	Expansion Expansion

	// Budget is how many bytes the node may hold for all its peers together: what waits in either
	// direction, what running calls hold, remembered answers, and 16 KiB for each session. From
	// half of it on the windows of streams shrink to what is guaranteed. Above it sessions and
	// calls of the peers that hold most are refused, with ErrOverloaded; those of peers that hold
	// less than their share begin and go on, and so does everything that has begun. Above nine
	// eighths no session begins. A peer has one share, however many sessions it has: peers are told
	// apart as for DurableAnswers.Share. The default is a quarter of GOMEMLIMIT, if that is set, or
	// else of the machine's memory, or of 4 GiB where that is not known. Negative: any number.
	//
	// It is no wall: what peers were promised before may still come, up to the inbound soft limit
	// of each session.
	Budget int
}

// Expansion says what encoded values may become: so many times the bytes that have come, and so
// many bytes more. A few bytes may stand for much: a null in a list of structs is one byte, and
// takes a whole struct. It is estimated before anything is allocated. Parameters beyond the bound
// are refused with ErrBadParams, and have not run. Results and elements of streams are ErrBadResult
// at the caller that receives them, and elements ErrBadParams at a handler. What parameters become
// counts as what running calls hold, and so such a call waits until it fits; one that never does
// runs while no other large one does. It is for the codecs of this module, and for others that are
// a [codec.Weigher]; what types that decode themselves make of their bytes is theirs to bound.
type Expansion struct {
	Times int // 32 by default
	Plus  int // bytes; 64 KiB by default; negative: none
}

// WithLimits bounds what the sessions of the node take and hold. A zero limits.Limits is the
// default; of another one, a zero Amount is no limit.
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
		setField(&c.expansion.times, l.Expansion.Times)
		setBound(&c.expansion.plus, l.Expansion.Plus)
		setBound(&c.budget, l.Budget)
	}
}

// DurableAnswers says how the answers to durable calls of peers are remembered; see [WithDurable]
// and [WithDurableAnswers].
type DurableAnswers struct {
	// For is for how long: 5 minutes by default. A durable call whose session has ended runs on for
	// as long, or for its time to live if that is shorter; then its context ends. With Workers.Node
	// at most half of those do so at once, and beyond that the context of the one which has been
	// without a session for the longest time ends.
	For time.Duration

	// Calls and Bytes are how many calls, and how many bytes of their answers, are remembered:
	// 65,536 and 64 MiB by default; negative: any number. When that is used up, further durable
	// calls are refused with ErrOverloaded before they run, and [RetryAfter] says when something
	// will be forgotten. An answer for which there is no room is not kept: a repetition of its call
	// fails with ErrOverloaded, and is not [Repeatable], because the call ran.
	Calls, Bytes int

	// Share is which part of Calls and Bytes the durable calls of one peer may use, over all its
	// sessions: at most 1, and an eighth by default. Peers are told apart by the Subject that
	// Access.Accept grants, else by their TLS certificates, else by their addresses.
	Share float64
}

// WithDurableAnswers says how the answers to durable calls of peers are remembered.
func WithDurableAnswers(a DurableAnswers) Option {
	return func(c *config) {
		setField(&c.remember, a.For)
		setBound(&c.remembered.Messages, a.Calls)
		setBound(&c.remembered.Bytes, a.Bytes)
		setField(&c.memoryShare, a.Share)
	}
}
