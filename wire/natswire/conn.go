package natswire

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	// beat is the interval of keepalives, which also ask the NATS server whether the peer exists.
	beat = 5 * time.Second
	// silence is the number of beats without a message after which the peer is lost.
	silence = 3
	// farewell is how long Close waits until NATS has taken the closing message.
	farewell = 100 * time.Millisecond
)

// conn is one end of a Wire, as a net.Conn: a stream of bytes each way, split into numbered
// messages.
type conn struct {
	link          *link // these are fixed
	local, remote net.Addr
	piece         int // maximum bytes of the stream in one message

	in     connReceiver
	credit credit
	out    connSender

	next   uint64        // belongs to receive: the number of the next message
	hears  atomic.Uint64 // messages received
	opened chan struct{} // closed by receive when a listener has opened the Wire
	ended  chan struct{} // closed when the Wire is over
	once   sync.Once     // closes ended
	left   chan struct{} // closed when all but the place is released

	mu     sync.Mutex
	why    error              // guarded by mu, as all below: the reason of the end
	sub    *nats.Subscription // of the inbox
	pulse  *time.Timer        // calls beat; nil before the Wire is open and when it is over
	heard  uint64             // value of hears at the last beat
	quiet  int                // beats since a message was received
	beaten time.Time          // when pulse was set
	looks  wait.Looks
	place  transport.Place // nil: there are no admission limits
}

// newConn returns an end of a Wire over l. Its peer is still unknown.
func newConn(l *link, remote string) *conn {
	c := &conn{
		link: l, local: transport.Addr("nats", l.nc.ConnectedAddr()), remote: transport.Addr("nats", remote),
		piece:  int(min(largest, l.nc.MaxPayload())) - headerSize,
		opened: make(chan struct{}), ended: make(chan struct{}), left: make(chan struct{}),
	}
	c.in.changed.L, c.credit.changed.L = &c.in.mu, &c.credit.mu
	c.out.nc, c.out.inbox = l.nc, newInbox(l.nc)
	return c
}

// subscribe begins to receive.
func (c *conn) subscribe() error {
	sub, err := c.link.nc.Subscribe(c.out.inbox, c.receive)
	if err != nil {
		return err
	}
	// beyond the limit of a peer; the sequence numbers reveal any loss
	sub.SetPendingLimits(2*window/overhead, 2*window)
	c.mu.Lock()
	c.sub = sub
	c.mu.Unlock()
	return c.link.add(c)
}

// open begins to send to a peer, with the parameters of its greeting.
func (c *conn) open(to string, g helloMessage) {
	c.out.begin(to)
	c.credit.open(g.window)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.beaten = time.Now()
		c.pulse = time.AfterFunc(c.link.beat, c.beat) // ends with finish
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, emptied, err := c.in.read(p)
	if emptied && c.in.taken.Load()-c.out.told.Load() >= window/4 {
		c.out.send(kindState, nil, &c.in.taken) // the next operation reports an error
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), c.piece)]
		if err := c.credit.spend(len(piece)); err != nil {
			return n, err
		}
		if err := c.out.send(kindData, piece, &c.in.taken); err != nil {
			c.fail(err)
			return n, c.cause()
		}
		n += len(piece)
		p = p[len(piece):]
	}
	return n, nil
}

// beat sends a keepalive, and considers a silent peer lost.
func (c *conn) beat() {
	if !c.alive() {
		c.fail(fmt.Errorf("%w: nothing was heard from it for %v", ErrPeerGone, silence*c.link.beat))
		return
	}
	if err := c.out.send(kindState, nil, &c.in.taken); err != nil {
		c.fail(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pulse != nil {
		c.beaten = time.Now() // NATS may have let the message wait
		c.pulse.Reset(c.link.beat)
	}
}

// alive reports whether a message has arrived from the peer recently.
func (c *conn) alive() bool {
	hears := c.hears.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.looks.Late(time.Since(c.beaten), c.link.beat)
	if c.quiet++; hears != c.heard {
		c.heard, c.quiet = hears, 0
	}
	return c.quiet < silence || late // then the messages that have arrived are read first
}

// fail ends the Wire for err, and sends err to the peer. Only the first reason counts.
func (c *conn) fail(err error) {
	c.finish(err, err, func() { c.out.send(kindEnd, short(err.Error()), &c.in.taken) })
}

// finish ends both directions, each with an error. A goroutine then calls goodbye and releases all
// but the place; it ends when NATS has taken the message, or the connection to it has ended.
func (c *conn) finish(in, out error, goodbye func()) {
	c.once.Do(func() {
		c.mu.Lock()
		c.why = out
		if c.pulse != nil {
			c.pulse.Stop()
			c.pulse = nil
		}
		sub := c.sub
		c.mu.Unlock()
		c.credit.end(out) // first: after a Read that has returned the end, a Write must fail
		c.in.end(in)
		close(c.ended)
		go func() {
			defer close(c.left)
			goodbye()
			if sub != nil {
				sub.Unsubscribe() // an error means that the connection has ended
			}
			c.link.remove(c)
		}()
	})
}

// cause returns the reason of the end.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// disconnected implements linkUser.
func (c *conn) disconnected(err error, _ bool) { c.fail(err) }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.in.abandon()
	c.finish(net.ErrClosed, net.ErrClosed, func() { c.out.send(kindEnd, nil, &c.in.taken) })
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-c.left:
	case <-timer.C:
	}
	if p := c.Place(); p != nil {
		p.Leave()
	}
	return nil
}

// Place is for wires: see transport.Admitted.
func (c *conn) Place() transport.Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { c.in.setDeadline(t); return nil }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { c.credit.setDeadline(t); return nil }

var _ net.Conn = (*conn)(nil)
