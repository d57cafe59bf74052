package quicwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
)

// listener accepts the sessions of all connections to one socket, which stays open until the last of them has ended.
type listener struct {
	quic   *quic.Listener // these are fixed
	from   *quic.Transport
	url    string
	unused time.Duration // after which a connection without a session is closed

	wires  chan wire.Wire // on their way to Accept
	failed chan wire.Wire // of handshakes that failed, as many as there is room for
	done   chan struct{}  // closed by Close

	mu     sync.Mutex
	closed bool                   // guarded by mu
	conns  map[*incoming]struct{} // guarded by mu: the connections that are up
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
		url: scheme + "://" + socket.LocalAddr().String(), unused: unused,
		wires: make(chan wire.Wire), failed: make(chan wire.Wire, 16), done: make(chan struct{}),
		conns: make(map[*incoming]struct{}),
	}
	l.from = &quic.Transport{Conn: socket, ConnContext: l.attempt}
	if l.quic, err = l.from.Listen(c, config(sessions)); err != nil {
		socket.Close()
		return nil, err
	}
	go l.run() // ends with Close
	return l, nil
}

// run takes the connections whose handshake is complete.
func (l *listener) run() {
	for {
		c, err := l.quic.Accept(context.Background())
		if err != nil { // Close was called, or the socket failed
			l.Close()
			return
		}
		in := &incoming{l: l, quic: c}
		if l.begin(in) {
			go in.run() // ends with the connection
		}
	}
}

// begin notes that a connection is up, unless the listener is closed.
func (l *listener) begin(in *incoming) bool {
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

// end forgets a connection that has ended.
func (l *listener) end(in *incoming) {
	l.mu.Lock()
	delete(l.conns, in)
	last := l.closed && len(l.conns) == 0
	l.mu.Unlock()
	if last {
		l.release()
	}
}

// release gives the socket back.
func (l *listener) release() {
	l.from.Close()
	l.from.Conn.Close()
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	select {
	case <-l.done: // even if a Wire waits, too
	default:
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

// Close implements wire.Listener. Connections without a session are closed; the others go on.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	none := len(l.conns) == 0
	var unused []*incoming
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

// URL implements wire.Listener.
func (l *listener) URL() string { return l.url }

// incoming is a connection to a listener.
type incoming struct {
	l    *listener // these are fixed
	quic *quic.Conn

	streams int         // guarded by l.mu: those that are not over
	idle    *time.Timer // guarded by l.mu: runs while there are none
}

// run hands the sessions of the connection to Accept, until the connection ends.
func (in *incoming) run() {
	defer in.l.end(in)
	for {
		str, err := in.quic.AcceptStream(in.quic.Context())
		if err != nil {
			return
		}
		if a, ok := in.quic.Context().Value(attempt{}).(*atomic.Bool); ok {
			a.Store(true)
		}
		in.begin()
		s := &streamConn{conn: in.quic, quic: str, over: in.end}
		select {
		case in.l.wires <- newWire(s):
		case <-in.l.done:
			s.Close()
		case <-in.quic.Context().Done():
			return
		}
	}
}

func (in *incoming) begin() {
	in.l.mu.Lock()
	defer in.l.mu.Unlock()
	in.streams++
	in.idle.Stop()
}

// end is called for a stream that is over.
func (in *incoming) end() {
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
func (in *incoming) expire() {
	in.l.mu.Lock()
	in.idle.Stop()
	used := in.streams > 0 // since a moment ago
	in.l.mu.Unlock()
	if used {
		return
	}
	in.quic.CloseWithError(codeUnused, fmt.Sprintf("the connection had no session for %v, or the listener was closed", in.l.unused))
}

// attempt is the key of what the context of a connection says: whether a session has begun on it.
type attempt struct{}

// attempt watches over a handshake. If it fails, or the peer breaks the protocol before a session has begun, Accept tells.
func (l *listener) attempt(ctx context.Context, peer *quic.ClientInfo) (context.Context, error) {
	begun := new(atomic.Bool)
	ctx = context.WithValue(ctx, attempt{}, begun)
	context.AfterFunc(ctx, func() {
		err := context.Cause(ctx)
		if broken := (*quic.TransportError)(nil); begun.Load() || !errors.As(err, &broken) || broken.ErrorCode == quic.ConnectionRefused {
			return
		}
		select {
		case l.failed <- wire.FromConn(failedConn{fault(err), l.from.Conn.LocalAddr(), peer.RemoteAddr}):
		default: // a flood of those is not worth more
		}
	})
	return ctx, nil
}
