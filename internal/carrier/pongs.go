package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// The reader answers Pings together with whatever else it answers, and of several Pings only the
// newest. If very many come all the same, it answers most of them late, by the Pong of a later one,
// because an answer costs more than a question.

const (
	pongsASecond = 100     // that are sent at once
	pongBytes    = 4 << 10 // so many bytes that have arrived in the second let one more be sent
)

// pongs bounds how many Pongs a session sends.
type pongs struct {
	second uint32 // of the node's clock, of the latest Ping; belongs to the reader, as the next two
	sent   uint32 // Pongs in it
	before uint32 // bytes that had arrived at its beginning, the low bits

	late   atomic.Bool   // a timer will answer
	newest atomic.Uint64 // the Ping that it will
}

// answer answers a Ping of the peer. arrived is how many bytes have come, the low bits. It is for
// the reader.
func (p *pongs) answer(b *base, n uint64, arrived uint32) {
	now := b.Now()
	if p.answersAt(uint32(now/time.Second), arrived) {
		b.host.Control(message.Pong{N: n}, AfterReading)
		return
	}
	p.newest.Store(n)
	if !p.late.Swap(true) {
		time.AfterFunc(time.Second-now%time.Second, func() {
			p.late.Store(false)
			b.host.Control(message.Pong{N: p.newest.Load()}, Now)
		})
	}
}

// answersAt reports whether a Ping of the given second is answered at once. One that comes while
// another waits has to wait as well.
func (p *pongs) answersAt(second, arrived uint32) bool {
	if p.late.Load() {
		return false
	}
	if p.second != second {
		p.second, p.sent, p.before = second, 0, arrived
	}
	if p.sent >= pongsASecond && p.sent-pongsASecond >= (arrived-p.before)/pongBytes {
		return false
	}
	p.sent++
	return true
}
