package quicwire

import (
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// relay is a network path between one client and a server. It delays and drops packets, and can
// change the client's address, as a NAT router does.
type relay struct {
	front  *net.UDPConn // these are fixed; the client sends to it
	server net.Addr
	delay  time.Duration // of each packet, in each direction
	loss   float64       // of packets, in each direction

	goroutines sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand   // guarded by mu
	client net.Addr     // guarded by mu: the latest sender
	back   *net.UDPConn // guarded by mu: what the server sees
}

// newRelay starts a path to a server, which ends with t.
func newRelay(t testing.TB, server string, delay time.Duration, loss float64) *relay {
	t.Helper()
	r := &relay{delay: delay, loss: loss, random: rand.New(rand.NewPCG(1, 2))}
	var err error
	r.server, err = net.ResolveUDPAddr("udp", server)
	require.NoError(t, err)
	r.front, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	r.rebind(t)
	r.carry(r.front, func(p []byte, from net.Addr) {
		r.mu.Lock()
		r.client = from
		back := r.back
		r.mu.Unlock()
		back.WriteTo(p, r.server)
	})
	t.Cleanup(func() {
		r.front.Close()
		r.back.Close()
		r.goroutines.Wait()
	})
	return r
}

// endAll ends the connections of a listener: the path may drop the CONNECTION_CLOSE of a
// connection, which then lasts until its timeout.
func endAll(l wire.Listener) {
	in := l.(*listener)
	in.mu.Lock()
	conns := slices.Collect(maps.Keys(in.conns))
	in.mu.Unlock()
	for _, c := range conns {
		c.quic.CloseWithError(0, "")
	}
}

func (r *relay) address() string { return r.front.LocalAddr().String() }

// rebind changes the address that the server sees. Packets to the old address are lost.
func (r *relay) rebind(t testing.TB) {
	t.Helper()
	back, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	r.mu.Lock()
	old := r.back
	r.back = back
	r.mu.Unlock()
	if old != nil {
		old.Close()
	}
	r.carry(back, func(p []byte, _ net.Addr) {
		r.mu.Lock()
		client := r.client
		r.mu.Unlock()
		r.front.WriteTo(p, client)
	})
}

// carry forwards the packets of a socket until it is closed.
func (r *relay) carry(socket *net.UDPConn, on func(p []byte, from net.Addr)) {
	type packet struct {
		p    []byte
		from net.Addr
		due  time.Time
	}
	path := make(chan packet, 10_000)
	r.goroutines.Go(func() { // ends with the socket
		defer close(path)
		buf := make([]byte, 64<<10)
		for {
			n, from, err := socket.ReadFrom(buf)
			if err != nil {
				return
			}
			if r.lost() {
				continue
			}
			select {
			case path <- packet{slices.Clone(buf[:n]), from, time.Now().Add(r.delay)}:
			default: // the path is full
			}
		}
	})
	r.goroutines.Go(func() { // ends with the one above
		for p := range path {
			time.Sleep(time.Until(p.due)) //nolint:forbidigo // the delay of the path
			on(p.p, p.from)
		}
	})
}

func (r *relay) lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < r.loss
}
