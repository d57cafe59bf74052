package quicwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// listener accepts the sessions of all connections to one socket, which stays open until the last
// of them has ended.
type listener struct {
	quic *quic.EarlyListener // these are fixed
	from *quic.Transport
	url  string
	// after which a connection without a session is closed; fixed once started is closed
	unused time.Duration

	wires  chan wire.Wire // on their way to Accept
	failed chan wire.Wire // failed handshakes, while there is room
	done   chan struct{}  // closed by Close

	start   sync.Once
	door    transport.Door // nil: there is no door; fixed once started is closed
	started chan struct{}  // closed by Guard

	handshakes pendingHandshakes

	mu     sync.Mutex
	closed bool                       // guarded by mu
	conns  map[*incomingConn]struct{} // guarded by mu: the connections that are up
}

// listen starts to listen.
func listen(ctx context.Context, address string, c *tls.Config, unused time.Duration) (wire.Listener, error) {
	c, err := serverTLS(c)
	if err != nil {
		return nil, err
	}
	socket, err := new(net.ListenConfig).ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	l := &listener{
		url: transport.AddrURL(scheme, socket.LocalAddr()), unused: unused,
		wires: make(chan wire.Wire), failed: make(chan wire.Wire, 16), done: make(chan struct{}), started: make(chan struct{}),
		conns: make(map[*incomingConn]struct{}),
	}
	l.from = &quic.Transport{Conn: socket, VerifySourceAddress: l.suspects, ConnContext: l.admit}
	if l.quic, err = l.from.ListenEarly(c, config(sessions)); err != nil {
		socket.Close()
		return nil, err
	}
	go l.run() // ends with Close
	return l, nil
}

// Guard implements transport.Guarded.
func (l *listener) Guard(d transport.Door) {
	l.start.Do(func() {
		if l.door = d; d != nil {
			l.unused = math.MaxInt64 // the loss of the place limits the time
		}
		close(l.started)
	})
}

// suspects reports whether an address has to be validated by a Retry.
func (l *listener) suspects(net.Addr) bool {
	l.await()
	return l.handshakes.many()
}

// await waits until connections may be accepted. Until then quic-go keeps a few packets, and drops
// further ones.
func (l *listener) await() {
	select {
	case <-l.started:
	case <-l.done:
	}
}

// admit accepts or rejects a connection, when its first packet has arrived and its address is known
// or may be trusted. If the handshake fails, or the peer breaks the protocol before a session has
// begun, Accept returns the error.
func (l *listener) admit(ctx context.Context, peer *quic.ClientInfo) (context.Context, error) {
	l.await()
	a := &handshakeAttempt{from: peer.RemoteAddr, to: l.from.Conn.LocalAddr(), handshakes: &l.handshakes, failed: l.failed, open: true}
	if !l.handshakes.enter(a.from) {
		return nil, errCrowd
	}
	if l.door != nil {
		var err error
		if a.place, err = l.door.Enter(a.from, a.cut); err != nil {
			l.handshakes.leave(a.from, true)
			return nil, err
		}
	}
	context.AfterFunc(ctx, func() { a.ended(context.Cause(ctx)) })
	return context.WithValue(ctx, attemptKey{}, a), nil
}

var errCrowd = errors.New("too many handshakes have stopped at their first packet")

// run accepts the connections that have reached the point of the handshake from which they can be
// closed.
func (l *listener) run() {
	for {
		c, err := l.quic.Accept(context.Background())
		if err != nil { // Close was called, or the socket failed
			l.Close()
			return
		}
		a := c.Context().Value(attemptKey{}).(*handshakeAttempt)
		a.reached(c)
		in := &incomingConn{l: l, quic: c, attempt: a}
		if l.begin(in) {
			go in.run() // ends with the connection
		}
	}
}

// begin records a connection, unless the listener is closed.
func (l *listener) begin(in *incomingConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		go in.quic.CloseWithError(codeUnused, "the listener was closed") // ends by itself
		return false
	}
	l.conns[in] = struct{}{}
	in.idle = time.AfterFunc(l.unused, in.expire)
	return true
}

// end removes a connection that has ended.
func (l *listener) end(in *incomingConn) {
	l.mu.Lock()
	delete(l.conns, in)
	last := l.closed && len(l.conns) == 0
	l.mu.Unlock()
	if last {
		l.release()
	}
}

// release closes the socket.
func (l *listener) release() {
	l.from.Close()
	l.from.Conn.Close()
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	select {
	case <-l.done: // even if a Wire waits as well
	default:
		l.Guard(nil) // unless it was called before
		select {
		case w := <-l.wires:
			return w, nil
		case w := <-l.failed:
			return w, nil
		case <-l.done:
		}
	}
	return nil, fmt.Errorf("quicwire: accept: %w", net.ErrClosed)
}

// Close implements wire.Listener. Connections without a session are closed; all other connections
// stay open.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	none := len(l.conns) == 0
	var unused []*incomingConn
	for in := range l.conns {
		if in.streams == 0 {
			unused = append(unused, in)
		}
	}
	l.mu.Unlock()
	close(l.done)
	l.quic.Close()
	for _, in := range unused {
		in.expire()
	}
	if none {
		l.release()
	}
	return nil
}

// Private implements wire.Private: all is encrypted.
func (l *listener) Private() bool { return true }

// URL implements wire.Listener.
func (l *listener) URL() string { return l.url }

// incomingConn is a connection to a listener.
type incomingConn struct {
	l       *listener // these are fixed
	quic    *quic.Conn
	attempt *handshakeAttempt

	streams int         // guarded by l.mu: those that are not over
	idle    *time.Timer // guarded by l.mu: runs while there are none
}

// run hands the sessions of the connection to Accept, until the connection ends.
func (in *incomingConn) run() {
	defer in.l.end(in)
	select {
	case <-in.quic.HandshakeComplete():
		in.attempt.complete()
	case <-in.quic.Context().Done():
		return
	}
	for {
		str, err := in.quic.AcceptStream(in.quic.Context())
		if err != nil {
			return
		}
		in.attempt.begun.Store(true)
		if !in.take(str) {
			return
		}
	}
}

// take hands a session to Accept. It reports false if the connection has ended.
func (in *incomingConn) take(str *quic.Stream) bool {
	in.begin()
	s := &streamConn{conn: in.quic, quic: str, over: in.end}
	if err := in.attempt.enter(s); err != nil {
		str.CancelRead(codeClosed)
		str.CancelWrite(codeClosed)
		in.end()
		return true
	}
	select {
	case in.l.wires <- newWire(s):
	case <-in.l.done:
		s.Close()
	case <-in.quic.Context().Done():
		leave(s.placed())
		return false
	}
	return true
}

func (in *incomingConn) begin() {
	in.l.mu.Lock()
	defer in.l.mu.Unlock()
	in.streams++
	in.idle.Stop()
}

// end is called for a stream that is over.
func (in *incomingConn) end() {
	in.l.mu.Lock()
	in.streams--
	none := in.streams == 0
	if none {
		in.idle.Reset(in.l.unused)
	}
	expired := none && in.l.closed
	in.l.mu.Unlock()
	if expired {
		in.expire()
	}
}

// expire closes the connection if it has no session.
func (in *incomingConn) expire() {
	in.l.mu.Lock()
	in.idle.Stop()
	used := in.streams > 0 // since a moment ago
	in.l.mu.Unlock()
	if used {
		return
	}
	in.quic.CloseWithError(codeUnused, "the connection had no session for too long, or the listener was closed")
}
