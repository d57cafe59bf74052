package carrier

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// The reader sends Pongs together with its other replies, and answers only the newest of several
// Pings. Pings beyond a rate are answered late, mostly by the Pong for a later Ping, because a Pong
// costs more than a Ping.

const (
	pongsASecond = 100     // Pongs that are sent at once in a second
	pongBytes    = 4 << 10 // received bytes in a second that permit one Pong more
)

// pongs bounds the number of Pongs that a session sends.
type pongs struct {
	second uint32 // of the latest Ping, by the node's clock; the reader's, as the next two
	sent   uint32 // Pongs in that second
	before uint32 // bytes received before that second, the low bits

	late   atomic.Bool   // a timer is about to answer
	newest atomic.Uint64 // the Ping that the timer answers
}

// answer answers a Ping of the peer. arrived is the number of received bytes, the low bits. It is
// for the reader.
func (p *pongs) answer(b *carrierBase, n uint64, arrived uint32) {
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

// answersAt reports whether a Ping of the given second is answered at once. While a Ping waits for
// the timer, later Pings wait as well.
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
