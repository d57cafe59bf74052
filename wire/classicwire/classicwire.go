// Package classicwire connects a session of protocol 1 with a program of the classic asterisque,
// protocol 0.1: its Wire translates between the two. An import of the package adds the scheme
// "classic://host:port", over TCP, to [wire.Dial] and [wire.Listen]; [Client] and [Server] make a
// Wire of any other connection.
//
//	import _ "github.com/asterisque-go/asterisque/wire/classicwire"
//
//	node := asterisque.NewNode(asterisque.WithCodecs(classic.MessagePack))
//	session, err := node.Dial(ctx, "classic://127.0.0.1:5330")
//
// # The codec
//
// Both ends need the same codec of the original: [classic.MessagePack], which is its default, or
// [classic.Simple]. WithCodecs names the codecs that a node has. The dialling side sends in the
// first of them. The accepting side recognizes the codec of its peer by the first bytes, and uses
// the same one: with WithCodecs(classic.MessagePack, classic.Simple) it serves both kinds. A
// handshake without a common codec fails with an error that names both codecs; the peer receives an
// error in its own codec. A server of the original with the other codec looks like one that is
// silent or lost: with MessagePackCodec it closes the connection; with SimpleCodec it waits for
// more bytes, so that the handshake times out.
//
// A classic peer has no windows, and neither has the session: only the soft and the hard limit of
// the session bound queued Blocks.
//
// # Translation
//
//	protocol 1                 classic
//	Sync                       Control Q, SyncConfig. A node id that is a uuid is sent as it is, any other as a hash, none as a random uuid
//	Open                       Open; the value becomes a list of parameters, as package classic says
//	Block                      Block, with its loss rate; null is EOF
//	Close                      Close; see classic.Code and classic.AbortOf for codes
//	Close of the session       Control C, behind a Close (-2) of each call that the peer waits for, because the original would wait forever
//	Credit, Stop, Drain, Ack   nothing. After Stop the peer sends on, and the session discards; after Drain the session refuses new calls by itself
//	Ping                       an EOF for a pipe that never existed. The original answers it with a Close, which becomes the Pong
//
// Classic messages have no fields for time to live, the number of skipped Blocks, trace context,
// metadata, the parent of a nested call, the detail of an Abort, or whether a call was refused
// before it ran. The Wire drops these, and the call is sent without them. Nor is there a field for
// an idempotency key: a durable call could run twice, so it fails with ErrBadParams before it is
// sent. An error from the peer is never repeatable (see asterisque.Repeatable). Errors of this side
// are repeatable: no pipe id is free, or the parameters are not classic values.
//
// # Unexpected messages
//
// An Open with an id in use, and a Block for an unknown pipe, are answered as the original does,
// except for those beyond 1,024 that a peer sends without reading the answers. A late Block of a
// closed pipe is not answered: the original answers it too, which may end the next call with the
// same id. Blocks without a reader are dropped, and the call continues. The original keeps the pipe
// of a function that threw an exception instead of returning a future; it is closed before its id
// is used again. A peer that breaks the protocol is sent a Control C also where the original says
// nothing, for its client connects again forever otherwise. If a function here fails, the peer
// receives the error text; the original sends "unexpected error". Parameters are not converted, for
// example from 5 to "5".
//
// # Limits
//
// A message has at most [classic.MaxMessage] bytes in either direction; larger ones fail with
// ErrTooLarge. So with Simple a text of 65,496 bytes is the largest single parameter, and one of
// 65,500 the largest result; with MessagePack that depends on the numbers in the head. Lists, maps
// and structs of any type nest [classic.MaxDepth] deep, within Limits.Expansion. A Block has at
// most [classic.MaxPayload] bytes. A Block that is slightly larger, but within the limit of the
// session, ends its call with ErrTooLarge on both sides.
//
// Pipe ids have 16 bits. Each side can have [MaxPipes] calls open at once; one more fails with
// ErrOverloaded, and did not run. The id of a call that this side has aborted is used again only
// after the peer has shown that it knows of the abort, so that no late answer is taken for that of
// another call.
//
// # Liveness
//
// The original never sends a Ping, and its silence carries no information. So a session that learns
// from the Wire that its peer sends no pings sends none itself, and never considers a silent peer
// lost: the keep-alive of TCP detects a peer that has vanished. A Ping that is sent nevertheless is
// answered by the peer itself. Sessions cannot be resumed.
package classicwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// init registers the scheme. A transport that the application has registered for it before stays.
func init() { wire.Register("classic", classicTransport{}) }

// Client returns a Wire over c, a connection that this side has dialled. The Wire owns c. The other
// end is a classic server.
//
// c has to meet the requirements of [wire.FromConn]. The Wire carries the frames of one session of
// protocol 1 and nothing else. It is [wire.Foreign], a [wire.BatchWriter] and a [wire.Meter], and
// [wire.Secure] if c is a [*tls.Conn].
func Client(c io.ReadWriteCloser) wire.Wire { return secure(newClassicWire(c, false), c) }

// Server is Client for the accepting side.
func Server(c io.ReadWriteCloser) wire.Wire { return secure(newClassicWire(c, true), c) }

// MaxBlock implements wire.Foreign. It returns the largest payload of a classic Block, so that
// streams are split accordingly.
func (w *classicWire) MaxBlock() int { return classic.MaxPayload }

// secureWire is a Wire over TLS.
type secureWire struct {
	*classicWire
	tls *tls.Conn
}

// ConnectionState implements wire.Secure.
func (s *secureWire) ConnectionState() tls.ConnectionState { return s.tls.ConnectionState() }

func secure(w *classicWire, c io.ReadWriteCloser) wire.Wire {
	if c, ok := c.(*tls.Conn); ok {
		return &secureWire{w, c}
	}
	return w
}

// classicTransport is for "classic://host:port".
type classicTransport struct{}

// Dial implements wire.Transport.
func (classicTransport) Dial(ctx context.Context, u *url.URL, _ wire.Options) (wire.Wire, error) {
	address, err := transport.HostPort(u, true)
	if err != nil {
		return nil, err
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return Client(c), nil
}

// Listen implements wire.Transport.
func (classicTransport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	address, err := transport.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	l, err := transport.ListenTCP(ctx, address, o.ReusePort)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l}, nil
}

// listener accepts classic clients.
type listener struct {
	net.Listener
	closed atomic.Bool
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, fmt.Errorf("classicwire: %w", err)
	}
	return Server(c), nil
}

// Close implements wire.Listener.
func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.Listener.Close()
}

// URL implements wire.Listener.
func (l *listener) URL() string { return transport.AddrURL("classic", l.Addr()) }
