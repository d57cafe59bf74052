package quicwire

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/asterisque-go/asterisque/wire"
)

// attempt is a connection to a listener from its first packet on.
type attempt struct {
	l     *listener // these are fixed
	from  net.Addr
	place wire.Place // nil: nobody was asked

	begun atomic.Bool // a session has

	mu   sync.Mutex
	quic *quic.Conn // guarded by mu, as all below; nil before it can be closed
	lost bool       // the place is
	open bool       // the handshake is not complete
}

// attemptKey is the key of its attempt in the context of a connection.
type attemptKey struct{}

// suspects reports whether an address has to prove that it is one, by an answer to a Retry.
func (l *listener) suspects(net.Addr) bool {
	l.await()
	return l.handshakes.many()
}

// await waits until connections may be taken. Until then quic-go keeps a few packets, and drops the
// rest.
func (l *listener) await() {
	select {
	case <-l.started:
	case <-l.done:
	}
}

// admit takes a connection, or refuses it, when its first packet is here and its address is known
// or may be trusted. It watches over the handshake: if that fails, or the peer breaks the protocol
// before a session has begun, Accept tells.
func (l *listener) admit(ctx context.Context, peer *quic.ClientInfo) (context.Context, error) {
	l.await()
	a := &attempt{l: l, from: peer.RemoteAddr, open: true}
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

// reached is called when the connection can be closed.
func (a *attempt) reached(c *quic.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quic = c
	a.l.handshakes.read(a.from)
	if a.lost {
		go a.close(c) // ends by itself
	}
}

// complete is called when the handshake is.
func (a *attempt) complete() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open {
		a.open = false
		a.l.handshakes.leave(a.from, a.quic == nil)
	}
}

// cut is called when the place is lost. Before quic-go tells of the connection, nothing can close
// it but the time limit of the handshake.
func (a *attempt) cut() {
	a.mu.Lock()
	a.lost = true
	c := a.quic
	a.mu.Unlock()
	if c != nil {
		a.close(c)
	}
}

func (a *attempt) close(c *quic.Conn) {
	c.CloseWithError(codeUnused, "the connection carried no session for too long, or others needed its place")
}

// ended is called when the connection has ended.
func (a *attempt) ended(err error) {
	a.complete()
	leave(a.place)
	if broken := (*quic.TransportError)(nil); a.begun.Load() || !errors.As(err, &broken) || broken.ErrorCode == quic.ConnectionRefused {
		return
	}
	select {
	case a.l.failed <- wire.FromConn(failedConn{fault(err), a.l.from.Conn.LocalAddr(), a.from}):
	default: // a flood of those is not worth more
	}
}

// enter gives a stream a place, if the connection has one.
func (a *attempt) enter(s *streamConn) error {
	if a.place == nil {
		return nil
	}
	p, err := a.place.Enter(func() { s.Close() })
	if err == nil {
		s.setPlace(p)
	}
	return err
}

// leave leaves a place, if there is one.
func leave(p wire.Place) {
	if p != nil {
		p.Leave()
	}
}

const (
	fewHandshakes = 16 // may be open before addresses have to prove themselves
	// connections that quic-go has not told of, since it waits for more of the first message
	mostUnread   = 1024
	mostUnreadOf = 64 // of one address
)

// handshakes counts connections whose handshake is not complete. Its methods may be called
// concurrently.
type handshakes struct {
	mu       sync.Mutex
	open     int // guarded by mu, as all below
	unread   int // of them, those that cannot be closed yet
	unreadOf map[netip.Prefix]int
}

// many reports whether there are more than a few.
func (h *handshakes) many() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open >= fewHandshakes
}

// enter counts one more, unless there are too many.
func (h *handshakes) enter(from net.Addr) bool {
	host := hostOf(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unread >= mostUnread || h.unreadOf[host] >= mostUnreadOf {
		return false
	}
	if h.unreadOf == nil {
		h.unreadOf = make(map[netip.Prefix]int)
	}
	h.open++
	h.unread++
	h.unreadOf[host]++
	return true
}

// read notes that one can be closed now.
func (h *handshakes) read(from net.Addr) {
	host := hostOf(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readLocked(host)
}

func (h *handshakes) readLocked(host netip.Prefix) {
	h.unread--
	if h.unreadOf[host]--; h.unreadOf[host] == 0 {
		delete(h.unreadOf, host)
	}
}

// leave counts one less. unread says whether it could not be closed.
func (h *handshakes) leave(from net.Addr, unread bool) {
	host := hostOf(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if unread {
		h.readLocked(host)
	}
}

// hostOf returns the host of an address, of IPv6 the /64 of which a household or a machine has all.
func hostOf(a net.Addr) (host netip.Prefix) {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return host
	}
	addr := u.AddrPort().Addr().Unmap().WithZone("")
	if addr.Is4() {
		return netip.PrefixFrom(addr, 32)
	}
	host, _ = addr.Prefix(64) // 64 is never too many
	return host
}
