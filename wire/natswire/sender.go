package natswire

import (
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// connSender numbers and publishes the messages of one end.
type connSender struct {
	nc    *nats.Conn // these two are fixed
	inbox string     // the NATS server reports missing readers here

	told atomic.Uint64 // the last value of taken sent to the peer

	// mu is held while a message is published, which blocks while the socket to the NATS server is
	// full: messages have to be published in the order of their numbers.
	mu   sync.Mutex
	to   string // guarded by mu, as all below: the peer's inbox
	next uint64 // number
	err  error  // the error of further sends
}

// begin sets the peer's inbox.
func (s *connSender) begin(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

// send publishes one message, with the count of taken bytes. It fails if the connection is lost, or
// if the sender has ended.
func (s *connSender) send(k messageKind, body []byte, taken *atomic.Uint64) error {
	mem := transport.TakeBuffer(headerSize + len(body))
	defer mem.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	h := messageHeader{k, s.next, taken.Load()}
	s.told.Store(h.taken)
	s.next++
	if k == kindEnd || k == kindRefusal {
		s.err = errPeerClosed // nothing may follow; Write returns the error of credit first
	}
	if err := s.publish(k, append(h.appendTo(mem.B[:0]), body...)); err != nil {
		return disconnected(err)
	}
	return nil
}

// publish publishes a message. For messages that may arrive late, it asks the NATS server to report
// a missing reader.
func (s *connSender) publish(k messageKind, msg []byte) error {
	if k == kindState || k == kindWelcome {
		return s.nc.PublishRequest(s.to, s.inbox, msg)
	}
	return s.nc.Publish(s.to, msg)
}
