package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Limits bounds the memory of a node's sessions; see [WithLimits]. The page docs/limits.md of the
// repository explains how the limits depend on each other, and the most that a session holds.
type Limits struct {
	// Inbound bounds the received messages that the application has not taken, for each session.
	// The soft limit covers every byte that a peer may send without asking: a quarter for calls
	// that wait for a worker, a quarter for nested calls, and half for Blocks. Running calls may
	// hold the same amount once more: their parameters, and answers that wait to be sent. A peer
	// that keeps to its grants never brings a session to the soft limit. With any other peer the
	// session stops reading at the soft limit, and ends with ErrHardLimit beyond the hard limit.
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
	// the hard limit is rejected with ErrTooLarge. The default is that of Inbound.
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
	// grows while the application keeps up and the path can use it: to 1 MiB, by at most an eighth
	// of the spare inbound soft limit, and over a long path to twice the bandwidth-delay product,
	// by at most four fifths of the spare. A Block larger than its window passes when the
	// application waits for it. By default there is no other bound; at most 4 GiB - 1. Negative:
	// there are no windows and no grants. Peers send freely, and the session stops reading at its
	// inbound soft limit.
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

	// Calls and Bytes bound the number of remembered calls, and the bytes of their answers: 65,536
	// and 64 MiB by default; negative: no bound. At the bound, further durable calls are rejected
	// with ErrOverloaded before they run, and [RetryAfter] returns when the next answer expires. An
	// answer that exceeds the bound is not kept: a repetition of its call fails with ErrOverloaded,
	// and is not [Repeatable], because the call ran.
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
