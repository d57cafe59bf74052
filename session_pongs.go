package asterisque

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// Pings are answered in the batch of whatever else answers what has arrived together with them, and
// of several only the newest. Where there are very many all the same, most of them are answered
// late, by the Pong of a later one: to answer costs more than to ask.

const (
	pongsASecond = 100      // that are sent at once
	pongBytes    = 64 << 10 // so many bytes that have arrived in the second let one more be sent
)

// pongs bounds how many Pongs a session sends.
type pongs struct {
	second uint32 // of the node's clock, of the latest Ping; belongs to the reader, as the next two
	sent   uint32 // Pongs in it
	before uint32 // how many times pongBytes had arrived at its beginning

	late   atomic.Bool   // a timer will answer
	newest atomic.Uint64 // the Ping that it will
}

// answer answers a Ping of the peer. It is for the reader.
func (p *pongs) answer(s *Session, n uint64) {
	now := s.shared.now()
	if p.may(s, uint32(now/time.Second)) {
		write, err := s.out.PutControl(message.Pong{N: n})
		if write {
			s.writeAfterReading()
		}
		s.controlled(false, err)
		return
	}
	p.newest.Store(n)
	if !p.late.Swap(true) {
		time.AfterFunc(time.Second-now%time.Second, func() {
			p.late.Store(false)
			s.control(message.Pong{N: p.newest.Load()})
		})
	}
}

// may reports whether a Ping of the given second is answered at once. One that comes while another
// waits has to wait as well.
func (p *pongs) may(s *Session, second uint32) bool {
	if p.late.Load() {
		return false
	}
	if p.second != second {
		p.second, p.sent, p.before = second, 0, s.pongBytes()
	}
	if p.sent >= pongsASecond && p.sent-pongsASecond >= s.pongBytes()-p.before {
		return false
	}
	p.sent++
	return true
}

// pongBytes returns how many times pongBytes have arrived. It is for the reader.
func (s *Session) pongBytes() uint32 {
	received, _, metered := s.live.progress(s.wire)
	if !metered {
		return 0
	}
	return uint32(received / pongBytes)
}
