package smuxwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
)

// Mux is a connection that carries wires. Its methods may be called concurrently.
type Mux struct {
	cfg   config // these are fixed
	sess  *smux.Session
	conn  *conn
	odd   uint32     // 1: the streams of this side have odd numbers
	tls   *tls.Conn  // nil without TLS
	place wire.Place // of the connection; nil: nobody was asked

	accepted chan wire.Wire
	opens    chan struct{} // has room for whoever opens a stream: one at a time

	ctx context.Context // ends with the Mux; its cause is why
	end context.CancelCauseFunc

	mu      sync.Mutex         // may be held while that of a stream is taken
	arrived *sync.Cond         // on mu; opening has changed
	streams map[uint32]*stream // guarded by mu, as all below
	last    uint32             // number of the latest stream of this side
	opening uint32             // number of the stream that is being opened; 0: none
	leaving bool               // the Mux ends with its last Wire
}

// Client makes a Mux of a connection that this side has made. It owns c from now on. Of c are
// required: bytes arrive in order and without loss; one Read and one Write may run at the same
// time, and Close at any time, which ends both. The error is that of an option.
func Client(c io.ReadWriteCloser, opts ...Option) (*Mux, error) { return newMux(c, true, nil, opts) }

// Server makes a Mux of a connection that the other side has made. Otherwise it is as [Client];
// that the two differ is all that matters.
func Server(c io.ReadWriteCloser, opts ...Option) (*Mux, error) { return newMux(c, false, nil, opts) }

// newMux makes a Mux that leaves place when its connection has been closed.
func newMux(c io.ReadWriteCloser, client bool, place wire.Place, opts []Option) (*Mux, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		c.Close()
		leave(place)
		return nil, err
	}
	m := &Mux{cfg: cfg, place: place, accepted: make(chan wire.Wire, cfg.waiting), opens: make(chan struct{}, 1), streams: make(map[uint32]*stream)}
	m.arrived = sync.NewCond(&m.mu)
	m.ctx, m.end = context.WithCancelCause(context.Background())
	m.tls, _ = c.(*tls.Conn)
	m.conn = newConn(c, byte(cfg.version), m)
	m.conn.place = place
	m.conn.crowd = newCrowd(cfg.wires*cfg.window/perFrame, cfg.window/perFrame)
	start := smux.Server
	if client {
		m.odd, m.last = 1, 1
		start = smux.Client
	}
	if m.sess, err = start(m.conn, cfg.smux()); err != nil {
		m.conn.finish()
		return nil, fmt.Errorf("smuxwire: %w", err)
	}
	go m.acceptLoop() // ends with the connection
	return m, nil
}

// Open opens a Wire. It needs no answer, and waits only while the connection is full; ctx ends the
// wait. The peer gets the Wire from Accept. Errors: [ErrFull]; that of ctx; why the Mux has ended.
func (m *Mux) Open(ctx context.Context) (wire.Wire, error) {
	type result struct {
		s   *stream
		err error
	}
	opened := make(chan result, 1)
	go func() {
		// ends when the stream is open, or with the Mux; at the latest after the library's time
		// limit of 30 seconds
		s, err := m.open(ctx)
		opened <- result{s, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, fmt.Errorf("smuxwire: open: %w", r.err)
		}
		return m.wire(r.s), nil
	case <-ctx.Done():
		go func() { // ends as the other one
			if r := <-opened; r.err == nil {
				r.s.Close()
			}
		}()
		return nil, fmt.Errorf("smuxwire: open: %w", ctx.Err())
	}
}

// ErrFull is returned by Open when the Mux has as many wires as [WithWires] allows.
var ErrFull = errors.New("the connection carries as many wires as it may; close some, use another connection, or see WithWires")

// open opens a stream.
func (m *Mux) open(ctx context.Context) (*stream, error) {
	select {
	case m.opens <- struct{}{}:
		defer func() { <-m.opens }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := m.reserve()
	if err != nil {
		return nil, err
	}
	opened, err := m.sess.OpenStream()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opening = 0
	m.arrived.Broadcast()
	if err != nil {
		m.leaveLocked()
		if m.Err() != nil {
			err = m.Err()
		}
		return nil, err
	}
	s.smux = opened
	m.streams[s.id] = s
	return s, nil
}

// reserve returns the stream that is opened next.
func (m *Mux) reserve() (*stream, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.Err(); err != nil {
		return nil, err
	}
	if len(m.streams) >= m.cfg.wires {
		return nil, ErrFull
	}
	m.last += 2 // as the library counts
	m.opening = m.last
	return newStream(m, m.last), nil
}

// arriving implements events. The library would throw away what arrives for a stream before it has
// finished opening it, so that waits.
func (m *Mux) arriving(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.opening == id && id != 0 {
		m.arrived.Wait()
	}
}

// opened implements events.
func (m *Mux) opened(id uint32) error {
	if id%2 == m.odd {
		return fmt.Errorf("the peer opened stream %d, which is a number of this side; is one of the two a Client, and the other a Server?", id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[id] != nil {
		return fmt.Errorf("the peer opened stream %d, which is open", id)
	}
	m.streams[id] = newStream(m, id)
	return nil
}

// closed implements events.
func (m *Mux) closed(id uint32) {
	m.arriving(id)
	m.mu.Lock()
	s := m.streams[id]
	m.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// acceptLoop takes the streams that the peer opens, so that the library never waits for somebody to
// do so.
func (m *Mux) acceptLoop() {
	for tries, refused := 0, 0; ; {
		opened, err := m.sess.AcceptStream()
		if err != nil {
			// The library picks at random between the end of the connection and the streams that
			// came before it.
			if tries++; tries < 100 && m.Err() == nil && m.hasMore() {
				continue
			}
			m.fail(reason(err))
			return
		}
		tries = 0
		if m.take(opened) {
			refused = 0
		} else if refused++; refused > mostRefused {
			m.fail(fmt.Errorf("the peer opened %d streams more than it may", refused))
			return
		}
	}
}

// mostRefused is how many streams a peer may open in a row that there is no room for.
const mostRefused = 1024

// take lets a stream that the peer has opened wait for Accept. It reports false if there is no room
// for it.
func (m *Mux) take(opened *smux.Stream) bool {
	s, room := m.begin(opened)
	w := m.wire(s)
	if !m.enter(s, w) {
		s.refuse()
		return true // the door knows when it is enough
	}
	if room {
		select {
		case m.accepted <- w:
			return true
		default:
		}
	}
	s.refuse()
	return false
}

// enter gives s a place, if the connection has one. It reports false if there is none for s.
func (m *Mux) enter(s *stream, w wire.Wire) bool {
	if m.place == nil {
		return true
	}
	p, err := m.place.Enter(func() { w.Close() })
	if err != nil {
		return false
	}
	s.setPlace(p)
	return true
}

// leave leaves a place, if there is one.
func leave(p wire.Place) {
	if p != nil {
		p.Leave()
	}
}

// hasMore reports whether the peer has opened streams that were not taken yet.
func (m *Mux) hasMore() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		if !s.hasBegun() {
			return true
		}
	}
	return false
}

// begin returns what belongs to a stream that the peer has opened, and whether there is room for
// it.
func (m *Mux) begin(opened *smux.Stream) (s *stream, room bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s = m.streams[opened.ID()]
	s.begin(opened)
	return s, m.hasRoomLocked() && !m.leaving
}

// closing is how many times as many wires as it may have a Mux has at most, with those that the
// peer has closed already.
const closing = 4

// hasRoomLocked reports whether there are no more wires than there may be. Those that the peer has
// closed do not count, unless they are far too many: it may open others instead before this side
// has closed them too.
func (m *Mux) hasRoomLocked() bool {
	switch {
	case len(m.streams) <= m.cfg.wires:
		return true
	case len(m.streams) > closing*m.cfg.wires:
		return false
	}
	open := 0
	for _, s := range m.streams {
		if !s.hasEnded() {
			open++
		}
	}
	return open <= m.cfg.wires
}

// reason returns what an error of the library means here.
func reason(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errCut
	case errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("nothing has come from the peer for too long: %w", io.ErrUnexpectedEOF)
	case errors.Is(err, smux.ErrInvalidProtocol):
		return errors.New("the peer broke the protocol of smux")
	}
	return err
}

// Accept waits for a Wire that the peer opens. Close ends the wait with an error that wraps
// [net.ErrClosed]; otherwise the error is why the Mux has ended.
func (m *Mux) Accept() (wire.Wire, error) {
	w, err := m.next(nil)
	if err != nil {
		return nil, fmt.Errorf("smuxwire: accept: %w", err)
	}
	return w, nil
}

// errStopped is returned by next when stop was closed.
var errStopped = errors.New("stopped")

// next waits for a Wire that the peer opens; stop ends the wait. Wires that are there when the Mux
// ends come first: there may be something to read in them.
func (m *Mux) next(stop <-chan struct{}) (wire.Wire, error) {
	select {
	case w := <-m.accepted:
		return w, nil
	default:
	}
	select {
	case w := <-m.accepted:
		return w, nil
	case <-m.ctx.Done():
		return nil, m.Err()
	case <-stop:
		return nil, errStopped
	}
}

// closeWaiting closes the wires that nobody will accept.
func (m *Mux) closeWaiting() {
	for {
		select {
		case w := <-m.accepted:
			w.Close()
		default:
			return
		}
	}
}

// wire returns the Wire over s.
func (m *Mux) wire(s *stream) wire.Wire {
	w := muxWire{wire.FromConn(s).(streamWire), s}
	if m.tls != nil {
		return &secureWire{w, m.tls}
	}
	return &w
}

// Done returns a channel that is closed when the Mux has ended.
func (m *Mux) Done() <-chan struct{} { return m.ctx.Done() }

// Err returns nil while the Mux is up, and then why it ended.
func (m *Mux) Err() error { return context.Cause(m.ctx) }

// Close closes all wires, and then the connection. What has been written still arrives. Repeated
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
	m.sess.Close() // an error could only say that it was closed already
}

// leave lets the Mux end with its last Wire, which it does at once if there is none, and accept no
// more.
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

// remove forgets a stream that was closed on this side.
func (m *Mux) remove(s *stream) {
	m.mu.Lock()
	delete(m.streams, s.id)
	s.forget()
	m.leaveLocked()
	m.mu.Unlock()
}
