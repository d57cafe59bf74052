package smuxwire

import (
	"context"
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque/wire"
)

// Open opens a Wire. It needs no answer, and blocks only while the connection is full; ctx ends the
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
	return newStream(m, m.conn.frames, m.last), nil
}

// wire returns the Wire over s.
func (m *Mux) wire(s *stream) wire.Wire {
	w := muxWire{wire.FromConn(s).(streamWire), s}
	if m.tls != nil {
		return &secureWire{w, m.tls}
	}
	return &w
}
