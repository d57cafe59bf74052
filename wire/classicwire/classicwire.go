// Package classicwire lets a session talk to a program of the classic asterisque, protocol 0.1, as
// if it spoke protocol 1: it is a Wire that translates. Importing it adds the scheme
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
// [classic.Simple]. A node says by WithCodecs which of them it has. The one that connects speaks
// the first of them. The one that was connected to sees by the first bytes which one its peer has,
// and speaks that: with WithCodecs(classic.MessagePack, classic.Simple) it serves both kinds. A
// handshake without a common codec fails with an error that names both, and the peer is told in its
// own codec. Only a server of the original with the other codec cannot be told apart from one that
// is silent or has gone: with MessagePackCodec it closes the connection, with SimpleCodec it waits
// for more, so that the handshake times out.
//
// A classic peer knows no windows, and the session has none: what waits is bounded by its soft and
// hard limits alone.
//
// # What is translated
//
//	protocol 1                 classic
//	Sync                       Control Q, SyncConfig. A node id that is a uuid is sent as it is, any other as a hash, none as a random uuid
//	Open                       Open; the value becomes a list of parameters, as package classic says
//	Block                      Block, with its loss rate; null is EOF
//	Close                      Close; see classic.Code and classic.AbortOf for codes
//	Close of the session       Control C, behind a Close (-2) of each call that the peer waits for, because the original would wait for ever
//	Credit, Stop, Drain, Ack   nothing. After Stop the peer sends on, and the session discards; after Drain the session refuses new calls by itself
//	Ping                       an EOF for a pipe that never was. The original answers it with a Close, and that is the Pong: the peer lives, and reads
//
// Classic messages have no place for time to live, for the number of skipped Blocks, trace
// context, metadata, the call that a call is nested in, an Abort's detail, and whether a call
// was refused before it ran: these stay here, and the call goes without. Nor have they one for
// an idempotency key: a durable call fails with ErrBadParams before it is sent, as it could run
// twice. An error of the peer is never repeatable, but those that this side makes up are: no
// pipe id is free, the parameters are not classic values.
//
// # What does not fit
//
// An Open with an id in use and a Block for a pipe that never was are answered as the original
// does, but for what a peer sends beyond 1,024 of them without reading the answers. Late Blocks of
// a pipe that is over are not: the original answers those, too, which may end the next call with
// the same id. Blocks that nobody reads are dropped, and the call goes on. The original keeps the
// pipe of a function that threw an exception instead of returning a future; it is closed before its
// id is used again. A peer that breaks the protocol is sent a Control C also where the original
// says nothing, for its client connects again for ever otherwise. Where a function here fails, the
// peer is told why; the original says "unexpected error". Parameters are not converted, as from 5
// to "5".
//
// # Limits
//
// A message has at most [classic.MaxMessage] bytes, either way; larger ones are refused with
// ErrTooLarge. So with Simple a text of 65,496 bytes is the largest single parameter, and one of
// 65,500 the largest result; with MessagePack that depends on the numbers in the head. Lists, maps
// and structs of any type nest [classic.MaxDepth] deep, within Limits.Expansion. A Block has at
// most [classic.MaxPayload]; one that is a little larger, so that the session lets it pass, ends
// its call with ErrTooLarge on both sides.
//
// Pipe ids have 16 bits. Each side can have [MaxPipes] calls open at once; one more fails with
// ErrOverloaded, and did not run. The id of a call that this side has aborted is used again only
// after the peer has shown that it knows of the abort, so that no late answer is taken for that of
// another call.
//
// # Liveness
//
// The original never pings, and its silence means nothing. So a session is told that its peer sends
// no pings, and neither sends any nor gives up a silent peer: one that vanished without a word is
// noticed by the keep-alive of TCP. A Ping that is sent all the same is answered by the peer
// itself. Sessions cannot be resumed.
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

// init is what importing the package is for. A program that has registered another transport for
// the scheme before keeps that.
func init() { wire.Register("classic", classicTransport{}) }

// Client returns a Wire over c, which this side has connected and the Wire owns from now on. The
// other end is a classic server.
//
// Of c the same is required as by [wire.FromConn]. The Wire carries the frames of one session of
// protocol 1 and nothing else. It is [wire.Foreign], a [wire.BatchWriter] and a
// [wire.Meter], and [wire.Secure] if c is a [*tls.Conn].
func Client(c io.ReadWriteCloser) wire.Wire { return secure(newClassicWire(c, false), c) }

// Server is Client for the side that was connected to.
func Server(c io.ReadWriteCloser) wire.Wire { return secure(newClassicWire(c, true), c) }

// MaxBlock implements wire.Foreign. It returns what a Block of the classic protocol can hold, so
// that streams are cut accordingly.
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
