package quicwire

import (
	"net"
	"net/netip"
	"sync"
)

const (
	fewHandshakes = 16 // open handshakes before addresses have to be validated
	// connections that quic-go has not reported yet, because their first message is incomplete
	mostUnread   = 1024
	mostUnreadOf = 64 // of one address
)

// pendingHandshakes counts connections with an incomplete handshake. Its methods may be called
// concurrently.
type pendingHandshakes struct {
	mu       sync.Mutex
	open     int // guarded by mu, as all below
	unread   int // of them, those that cannot be closed yet
	unreadOf map[netip.Prefix]int
}

// many reports whether there are more than a few.
func (h *pendingHandshakes) many() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open >= fewHandshakes
}

// enter counts one more, unless there are too many.
func (h *pendingHandshakes) enter(from net.Addr) bool {
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

// read records that a handshake can be closed now.
func (h *pendingHandshakes) read(from net.Addr) {
	host := hostOf(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readLocked(host)
}

func (h *pendingHandshakes) readLocked(host netip.Prefix) {
	h.unread--
	if h.unreadOf[host]--; h.unreadOf[host] == 0 {
		delete(h.unreadOf, host)
	}
}

// leave counts one less. unread reports that it could not be closed.
func (h *pendingHandshakes) leave(from net.Addr, unread bool) {
	host := hostOf(from)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if unread {
		h.readLocked(host)
	}
}

// hostOf returns the host of an address; for IPv6 the /64, because a household or a machine has all
// of it.
func hostOf(a net.Addr) (host netip.Prefix) {
	u, ok := a.(*net.UDPAddr)
	if !ok {
		return host
	}
	addr := u.AddrPort().Addr().Unmap().WithZone("")
	if addr.Is4() {
		return netip.PrefixFrom(addr, 32)
	}
	host, _ = addr.Prefix(64) // 64 is always valid
	return host
}
