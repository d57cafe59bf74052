package wire

import (
	"context"
	"crypto/tls"
	"net/url"
)

// Options are what [Dial] and [Listen] need beside the URL. The zero value is fine but for
// listening with TLS, which needs a certificate.
type Options struct {
	// TLS is for wires over TLS; others ignore it. It is copied before use. Nil stands for TLS 1.3,
	// verification by the roots of the system, and the application protocol (ALPN) "asterisque/1".
	// If MinVersion or NextProtos of a given one is not set, these are filled in. A listener always
	// turns session tickets off: a client that closes without having read them would reset the
	// connection, and lose what it wrote last.
	TLS *tls.Config

	// ReusePort lets other sockets listen at the same TCP port at the same time, if they all say so
	// (SO_REUSEPORT), so that a new process begins before the old one ends. The system gives each
	// connection to one of them; on Linux all have to be of the same user. What waits in the queue
	// of a listener is reset when that is closed, unless Linux is told to let others have it
	// (sysctl net.ipv4.tcp_migrate_req): the peer has to dial again, as a Connection does. A
	// socket that is handed over ([ListenerFile]) loses none. It is for TCP and what runs over it,
	// TLS, WebSocket and smux; listening at others fails with [errors.ErrUnsupported], and so it
	// does on Windows. Dialling ignores it, and so does who has a socket already.
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
	// Accept waits for the next Wire, which then belongs to the caller. A peer that misbehaves can
	// neither block nor end it: what can go wrong with one connection, such as a TLS handshake,
	// goes wrong in the first ReadFrame or write of its Wire. After Close the error wraps
	// [net.ErrClosed]; other errors, such as too many open files, may pass.
	Accept() (Wire, error)

	// Close ends waiting calls of Accept. Accepted wires go on. Repeated calls return nil.
	Close() error

	// URL returns where to dial. It has the real port if the Listener was to choose one, and the
	// host that was listened at, which may be unspecified: [::].
	URL() string
}

// Transport is one way to carry frames, for URLs of one scheme. Its methods may be called
// concurrently.
type Transport interface {
	Dialer

	// Listen starts to listen at u. start governs only the beginning. The error need not name u.
	Listen(start context.Context, u *url.URL, o Options) (Listener, error)
}
