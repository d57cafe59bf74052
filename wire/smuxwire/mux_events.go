package smuxwire

import "fmt"

// arriving implements frameEvents. The library would discard frames for a stream that it has not
// finished opening, so they wait here.
func (m *Mux) arriving(id uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.opening == id && id != 0 {
		m.arrived.Wait()
	}
}

// opened implements frameEvents.
func (m *Mux) opened(id uint32) error {
	if id%2 == m.odd {
		return fmt.Errorf("the peer opened stream %d, which is a number of this side; is one of the two a Client, and the other a Server?", id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[id] != nil {
		return fmt.Errorf("the peer opened stream %d, which is open", id)
	}
	m.streams[id] = newStream(m, m.conn.frames, id)
	return nil
}

// closed implements frameEvents.
func (m *Mux) closed(id uint32) {
	m.arriving(id)
	m.mu.Lock()
	s := m.streams[id]
	m.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// data implements frameEvents.
func (m *Mux) data(id uint32, bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[id]
	if s == nil {
		return nil // the library discards it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.arrived(bytes, m.conn.frames)
	if n := s.in.excess(); n > 0 && m.cfg.version > 1 {
		return fmt.Errorf("the peer has sent %d bytes more on stream %d than its window admits; "+
			"it has to wait until earlier bytes were read", n, id)
	}
	return nil
}

// granted implements frameEvents.
func (m *Mux) granted(id, limit uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.streams[id]; s != nil {
		s.mu.Lock()
		s.in.granted = limit
		s.mu.Unlock()
	}
}
