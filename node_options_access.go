package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// Access says who may do what; see [WithAccess].
type Access struct {
	// Accept is asked about every peer that connects, after its handshake has arrived and before
	// it is answered: until then it can call nothing, and has cost one small frame. What Accept
	// returns is what this peer gets, nil being what the node has for all, and so is the default,
	// without Accept. An error refuses the peer. An *[Abort] it gets as it is:
	// ErrUnauthorized.Withf("…") turns it away for good. Of any other error, such as that of a
	// database that does not answer, it gets ErrUnavailable with an id, and the node's log has the
	// same id and the text ([WithLogger]). A peer proves who it is by a TLS certificate
	// ([Peer.Certificate]; ask for one with ClientAuth of [WithTLS]) or by a credential
	// (Peer.Credential). Accept may be called concurrently; its context ends with
	// Timeouts.Handshake. It is asked again when a session is to be resumed: see [WithResume].
	//
	// Each call of Accept has a goroutine of its own, and nobody waits for it longer than its
	// context: it may block, and close the node. At most as many as Admission.HalfOpen says have
	// not returned; then further peers are refused with ErrOverloaded. A panic refuses that peer
	// with ErrUnavailable.
	Accept func(context.Context, Peer) (*Grant, error)

	// Credential returns what every peer is shown, in the handshake, that this side dials, at most
	// 4,096 bytes; by default nothing. It is asked after TLS has proved who the peer is. Over a
	// wire without TLS it is an error, here and on the other side, unless PlainCredentials allows
	// it.
	//
	// Each call of Credential has a goroutine of its own, at most 1,024 at once, and nobody waits
	// for it longer than its context. A panic fails that handshake with ErrUnavailable.
	Credential func(ctx context.Context, p Peer) ([]byte, error)

	// PlainCredentials lets credentials be shown, and accepted, over wires without TLS: fit for
	// Unix sockets and wires within a program, and for networks where nobody listens. It lets
	// sessions be resumed over any wire, too: see [WithResume].
	PlainCredentials bool

	// OutlivedCertificates lets sessions go on when the certificate of their peer expires. By
	// default they end then, with ErrUnauthorized, unless the peer has shown a newer one meanwhile,
	// on resuming the session.
	OutlivedCertificates bool
}

// WithAccess says who may do what. By default everybody may call what the node offers to all.
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

// Admission bounds how many peers there are, and how many try to be; see [WithAdmission].
type Admission struct {
	// HalfOpen is how many connections may be there at once that carry no session yet, from their
	// first packet on: before TLS, HTTP or a transport with many wires on one connection, and until
	// the handshake is over or the connection is closed, with one deadline for all of that
	// (Timeouts.Handshake). When there are more, the address that has most of them gives its oldest
	// up, which is cut off. 1,024 by default; negative: any number. Each may cost 12 KiB, while TLS
	// is being set up 50, and with smux 220. With smux and QUIC the connection has a place, and
	// each Wire on it that waits, so 2 is the least there. No more calls of Access.Accept run at
	// once. Where the process has fewer descriptors (ulimit -n), silent peers can take them all
	// until their deadline, and others wait in the queue of the system: set less then.
	HalfOpen int

	// Sessions is how many sessions peers may have with the node that have connected to it, over
	// [Node.Serve] and [Node.Accept]; further connections are closed at once, and told
	// ErrOverloaded where that needs no wait. 100,000 by default; negative: any number. Sessions
	// that are away are bounded as said at [WithResume]; with that, this bound and the next let
	// everybody say first which session it goes on with.
	Sessions int

	// PerAddress is the same for one address of a network, of IPv6 one /64, handshakes included.
	// The default is 10,000, as many agents may sit behind one router, and does not hold for
	// loopback addresses: a proxy on this machine may speak for everybody. What is set holds for
	// these too; wires that do not cross a network have no such bound. Negative: any number.
	PerAddress int
}

// WithAdmission bounds how many peers there are, and how many try to be.
func WithAdmission(a Admission) Option {
	return func(c *config) {
		setBound(&c.halfOpen, a.HalfOpen)
		setBound(&c.sessions, a.Sessions)
		setBound(&c.perAddress, a.PerAddress)
		c.set.perAddress = c.set.perAddress || a.PerAddress != 0
	}
}

// Resume says how sessions outlive their Wire; see [WithResume].
type Resume struct {
	// For is for how long a session waits for its peer. By default, and if it is negative, not at
	// all: that costs nothing.
	For time.Duration

	// Records is where the node keeps the records of sessions that may be resumed: by default in
	// its memory.
	Records Repository

	// Elsewhere lets a peer come back to any of the nodes that share Records, as behind one
	// address: it is called when a peer wants to go on with a session of which the record names
	// another node, and returns a Wire to that, which has to take it with [Node.AcceptRelayed].
	// From then on this node carries the frames of the session between the two Wires, until one of
	// them ends or this node shuts down; it counts as a session in Admission.
	//
	// No Wire and no error say that there is no such node any more: then a new session begins
	// here. For an error the peer is refused, and comes again if that may pass, as ErrUnavailable
	// does. Access.Accept has not been asked about that peer: the other node does. It runs on a
	// goroutine of its own, and has the time of its context, that of the handshake. Each node needs
	// an id of its own ([WithID]). Nil: sessions are resumed at the node that has them.
	Elsewhere func(ctx context.Context, r SessionRecord, p Peer) (wire.Wire, error)
}

// WithResume lets sessions outlive their Wire for up to r.For, if the peer's node has this option
// as well and connects by [Node.Connect]: when the Wire is lost, calls and streams wait until the
// peer is back over another one, and go on with nothing lost, doubled or reordered. What was sent
// is kept until the peer acknowledges it, and counts as outbound until then (see Limits.Outbound).
//
// A secret in the handshake entitles to a resume, another one each time. So the wire has to be
// private ([wire.IsPrivate]): over one that is not, connecting, serving and accepting such peers
// fail with ErrUnauthorized, unless Access.PlainCredentials allows it. Access.Accept is asked at
// each resume: another Subject has a session of its own, what is granted holds from then on, and a
// refusal ends the session, unless it may pass: ErrUnavailable, which is also any error but an
// *[Abort], or ErrOverloaded.
//
// Sessions that wait for peers which had connected to this node are at most a quarter as many as
// Admission.Sessions says, and of one peer as many as Admission.PerAddress says, loopback or not;
// they hold at most a quarter of Limits.Budget, and those of one peer an eighth. Beyond that the
// oldest one ends of the peer that has most. What is sent again for one session is at most 16 MiB a
// second, 64 MiB at once; a peer that comes back sooner waits.
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
