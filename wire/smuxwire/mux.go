package smuxwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Mux is a connection that carries wires. Its methods may be called concurrently.
type Mux struct {
	cfg   config // these are fixed
	sess  *smux.Session
	conn  *conn
	odd   uint32          // 1: streams of this side have odd numbers
	tls   *tls.Conn       // nil without TLS
	place transport.Place // of the connection; nil: there is no door

	accepted chan wire.Wire
	opens    chan struct{} // has room for one: streams are opened one at a time

	ctx context.Context // ends with the Mux; its cause is the reason
	end context.CancelCauseFunc

	mu      sync.Mutex         // may be held while the lock of a stream is taken
	arrived *sync.Cond         // on mu; opening has changed
	streams map[uint32]*stream // guarded by mu, as all below
	last    uint32             // number of the latest stream of this side
	opening uint32             // number of the stream that is being opened; 0: none
	leaving bool               // the Mux ends with its last Wire
}

// Done returns a channel that is closed when the Mux has ended.
func (m *Mux) Done() <-chan struct{} { return m.ctx.Done() }

// Err returns nil while the Mux is up, and then the reason of its end.
func (m *Mux) Err() error { return context.Cause(m.ctx) }

// Close closes all wires, and then the connection. Data written before still arrives. Repeated
// calls return nil.
func (m *Mux) Close() error {
	m.end(errMuxClosed)
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.streams))
	m.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range all {
		if s.hasBegun() {
			closing.Go(func() { s.Close() })
		}
	}
	closing.Wait()
	m.fail(errMuxClosed)
	return nil
}

var errMuxClosed = fmt.Errorf("the Mux was closed: %w", net.ErrClosed)

// fail ends the Mux because of cause; only the first cause is kept.
func (m *Mux) fail(cause error) {
	m.end(cause)
	m.sess.Close() // its only error is that it was closed already
}

// leave ends the Mux with its last Wire, at once if there is none. The Mux accepts no more wires.
func (m *Mux) leave() {
	m.mu.Lock()
	m.leaving = true
	m.leaveLocked()
	m.mu.Unlock()
}

// leaveLocked ends the Mux if it is leaving and empty.
func (m *Mux) leaveLocked() {
	if m.leaving && len(m.streams) == 0 && m.opening == 0 {
		m.end(errLeft)
		go m.sess.Close() // ends by itself; the lock is not held across it
	}
}

var errLeft = fmt.Errorf("the last Wire was closed: %w", net.ErrClosed)

// remove removes a stream that was closed on this side.
func (m *Mux) remove(s *stream) {
	m.mu.Lock()
	delete(m.streams, s.id)
	s.forget()
	m.leaveLocked()
	m.mu.Unlock()
}
