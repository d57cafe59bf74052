//go:build unix

package chaos

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// way is a forwarder. It carries connections from a fixed address to the present address of a
// process, and can cut them.
type way struct {
	name string // these are fixed
	ln   net.Listener
	all  sync.WaitGroup // its goroutines

	mu    sync.Mutex
	to    func() address // address for the next connection; guarded by mu, as all below
	wires []*severable
}

// address is the listen address of a process.
type address struct{ network, at string }

// severable is a connection that a way carries.
type severable struct{ near, far net.Conn }

func (s *severable) cut() {
	s.near.Close()
	s.far.Close()
}

// newWay starts a forwarder without a target, which ends with the test.
func newWay(t testing.TB, name string) *way {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &way{name: name, ln: ln, to: func() address { return address{} }}
	w.all.Go(w.carryAll) // ends with the listener
	t.Cleanup(w.close)
	return w
}

// at returns the fixed address.
func (w *way) at() string { return w.ln.Addr().String() }

// lead sets the target of new connections.
func (w *way) lead(to func() address) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = to
}

// leadTo sets a fixed target of new connections.
func (w *way) leadTo(network, at string) {
	w.lead(func() address { return address{network, at} })
}

func (w *way) target() address {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to()
}

func (w *way) carryAll() {
	for {
		near, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.all.Go(func() { w.carry(near) }) // ends with either end of the connection
	}
}

// carry carries a connection until one end of it is closed.
func (w *way) carry(near net.Conn) {
	defer near.Close()
	to := w.target()
	if to.at == "" {
		return
	}
	far, err := net.Dial(to.network, to.at)
	if err != nil {
		return
	}
	s := &severable{near, far}
	w.keep(s)
	var back sync.WaitGroup
	back.Go(func() { // ends with carry
		io.Copy(near, far)
		s.cut()
	})
	io.Copy(far, near)
	s.cut()
	back.Wait()
	w.forget(s)
}

func (w *way) keep(s *severable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wires = append(w.wires, s)
}

func (w *way) forget(s *severable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.wires {
		if other == s {
			w.wires = append(w.wires[:i], w.wires[i+1:]...)
			return
		}
	}
}

// cutOne cuts one of the connections, and reports whether there was one.
func (w *way) cutOne(rng *rand.Rand) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wires) == 0 {
		return false
	}
	w.wires[rng.IntN(len(w.wires))].cut()
	return true
}

// close ends the forwarder, and all its connections.
func (w *way) close() {
	w.ln.Close()
	w.mu.Lock()
	for _, s := range w.wires {
		s.cut()
	}
	w.mu.Unlock()
	w.all.Wait()
}
