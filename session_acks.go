package asterisque

import "time"

// countFrame counts a countable frame of size bytes that has been dealt with.
func (s *Session) countFrame(size int) {
	s.got.Store(s.got.Load() + 1) // by the reader alone
	r := s.res
	r.frames++
	r.bytes += size
	if r.frames >= ackFrames || r.bytes >= ackBytes {
		r.frames, r.bytes = 0, 0
		s.ack(ackFrames / 2)
	}
	if !s.acking.Swap(true) {
		if r.timer == nil {
			r.timer = time.AfterFunc(ackDelay, func() {
				s.acking.Store(false)
				s.ack(1)
			})
		} else {
			r.timer.Reset(ackDelay)
		}
	}
}

// ack tells the peer what has arrived, if that is at least least frames more than it knows.
func (s *Session) ack(least uint64) {
	if s.out.PutAck(least) {
		s.write()
	}
}
