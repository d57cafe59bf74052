package classicwire

import "sync"

// generatedFrames holds the frames that the Wire itself makes for the session. It locks itself.
type generatedFrames struct {
	ready chan struct{} // holds one token when there may be frames

	mu     sync.Mutex
	frames [][]byte // guarded by mu
}

// put adds a frame to the queue. Each frame answers one of the session, which bounds their number.
func (m *generatedFrames) put(frame []byte) {
	m.mu.Lock()
	m.frames = append(m.frames, frame)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns the oldest frame, or nil.
func (m *generatedFrames) take() (frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.frames) == 0 {
		return nil
	}
	frame, m.frames[0] = m.frames[0], nil
	m.frames = m.frames[1:]
	return frame
}
