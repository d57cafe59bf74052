package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

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
