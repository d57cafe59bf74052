package wire

import (
	"context"
	"crypto/tls"
	"net/url"
)

// Options are the parameters of [Dial] and [Listen] beside the URL. The zero value suffices for all
// but listening with TLS, which needs a certificate.
type Options struct {
	// TLS configures wires over TLS; all other wires ignore it. It is copied before use. Nil stands
	// for TLS 1.3, verification by the roots of the system, and the application protocol (ALPN)
	// "asterisque/1". In a given one, MinVersion and NextProtos are filled in if they are not set.
	// A listener always disables session tickets: a client that closes without having read them
	// would reset the connection, and lose its last writes.
	TLS *tls.Config

	// ReusePort allows several sockets to listen at the same TCP port at the same time, if all of
	// them set it (SO_REUSEPORT), so that a new process begins before the old one ends. The system
	// gives each connection to one of them; on Linux all have to be of the same user. The
	// connections in the queue of a listener are reset when it is closed, unless Linux is
	// configured to migrate them (sysctl net.ipv4.tcp_migrate_req): the peer has to dial again, as
	// a Connection does. A socket that is handed over ([ListenerFile]) loses none. ReusePort is for
	// TCP and the transports over it: TLS, WebSocket and smux. Listening with any other transport
	// fails with [errors.ErrUnsupported], as all do on Windows. Dialling ignores it, and so do
	// functions that take an existing socket.
	ReusePort bool
}

// Dialer opens wires. Its methods may be called concurrently.
type Dialer interface {
	// Dial connects to u. start governs the connecting, TLS handshake included, and has no effect
	// on the Wire that is returned. The error need not name u.
	Dial(start context.Context, u *url.URL, o Options) (Wire, error)
}

// Listener accepts wires. Its methods may be called concurrently.
type Listener interface {
	// Accept waits for the next Wire, which then belongs to the caller. A misbehaving peer can
	// neither block nor end it: a failure of one connection, such as a TLS handshake, is the error
	// of the first ReadFrame or write of its Wire. After Close the error wraps [net.ErrClosed];
	// other errors, such as too many open files, may be temporary.
	Accept() (Wire, error)

	// Close ends waiting calls of Accept. Accepted wires stay open. Repeated calls return nil.
	Close() error

	// URL returns the URL to dial. It has the actual port if the system has chosen it, and the host
	// of Listen, which may be unspecified: [::].
	URL() string
}

// Transport is one way to carry frames, for URLs of one scheme. Its methods may be called
// concurrently.
type Transport interface {
	Dialer

	// Listen starts to listen at u. start governs only the beginning. The error need not name u.
	Listen(start context.Context, u *url.URL, o Options) (Listener, error)
}
