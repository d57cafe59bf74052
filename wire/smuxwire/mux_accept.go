package smuxwire

import (
	"errors"
	"fmt"
	"io"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
)

// acceptLoop takes the streams that the peer opens, so that the library never waits for an
// AcceptStream.
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

// mostRefused is how many streams beyond the limit a peer may open in a row.
const mostRefused = 1024

// take queues a stream that the peer has opened for Accept. It reports false if there is no room
// for it.
func (m *Mux) take(opened *smux.Stream) bool {
	s, room := m.begin(opened)
	w := m.wire(s)
	if !m.enter(s, w) {
		s.refuse()
		return true // the door counts refusals
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

// enter gives s a place, if the connection has one. It reports false if the door refuses s.
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

// begin returns the stream for one that the peer has opened, and whether it is within the limit.
func (m *Mux) begin(opened *smux.Stream) (s *stream, room bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s = m.streams[opened.ID()]
	s.begin(opened)
	return s, m.hasRoomLocked() && !m.leaving
}

// closing bounds the wires of a Mux, those that the peer has closed included, as a multiple of the
// limit.
const closing = 4

// hasRoomLocked reports whether the number of wires is within the limit. Wires that the peer has
// closed do not count, unless they are far too many: the peer may open new ones before this side
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

// reason converts an error of the library.
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
// [net.ErrClosed]; otherwise the error is the reason of the end of the Mux.
func (m *Mux) Accept() (wire.Wire, error) {
	w, err := m.next(nil)
	if err != nil {
		return nil, fmt.Errorf("smuxwire: accept: %w", err)
	}
	return w, nil
}

// errStopped is returned by next when stop was closed.
var errStopped = errors.New("stopped")

// next waits for a Wire that the peer opens; stop ends the wait. Wires that are queued when the Mux
// ends are returned first: they may have unread data.
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

// closeWaiting closes the wires that are not accepted yet.
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
