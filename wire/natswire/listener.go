package natswire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

const (
	backlog = 128       // wires that can wait to be accepted
	asking  = 1024      // requests that can wait for an answer
	asks    = 256 << 10 // bytes that they hold together
)

// Listen listens at a name over a NATS connection of the caller. The caller keeps nc, which may
// have other users and has to stay open as long as the Listener and its wires. If the connection is
// lost, the wires fail; when package nats has connected again, the Listener continues. If it is
// closed, Accept fails. c is as for [Dial], and needs a certificate.
//
// Several can listen at one name, in one process or several: each Wire goes to one of them. start
// governs only the beginning. Errors are as those of Dial.
func Listen(start context.Context, nc *nats.Conn, name string, c *tls.Config) (wire.Listener, error) {
	ln, err := listen(start, newLink(nc, false), name, "nats:///"+name, c)
	if err != nil {
		return nil, fmt.Errorf("natswire: listen at %q: %w", name, err)
	}
	return ln, nil
}

// listener answers requests at a name.
type listener struct {
	link    *link // these are fixed
	url     string
	address string
	tls     *tls.Config // nil: without TLS

	waiting chan wire.Wire // opened and not accepted
	closed  chan struct{}  // closed by end
	once    sync.Once      // closes closed

	start   sync.Once
	started chan struct{}  // closed by Guard
	door    transport.Door // nil: there is no door; fixed once started is closed

	mu  sync.Mutex
	sub *nats.Subscription // guarded by mu: of the requests
	why error              // guarded by mu: why it is closed
}

// listen listens over a link. The link ends with the listener and its wires, or at once if listen
// fails.
func listen(ctx context.Context, l *link, name, url string, cfg *tls.Config) (wire.Listener, error) {
	ln := &listener{
		link: l, url: url, address: l.nc.ConnectedAddr() + "/" + name,
		waiting: make(chan wire.Wire, backlog), closed: make(chan struct{}), started: make(chan struct{}),
	}
	if err := ln.begin(ctx, name, cfg); err != nil {
		ln.end(err)
		return nil, err
	}
	return ln, nil
}

func (ln *listener) begin(ctx context.Context, name string, cfg *tls.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc := ln.link.nc
	subject, err := subjectOf(name)
	if err != nil {
		return err
	}
	if cfg != nil {
		if ln.tls, err = transport.ServerTLS(cfg, alpn); err != nil {
			return err
		}
	}
	if err := checkPayload(nc); err != nil {
		return err
	}
	if err := ln.link.add(ln); err != nil {
		return err
	}
	before := nc.LastError()
	sub, err := nc.QueueSubscribe(subject, group, ln.asked)
	if err != nil {
		return err
	}
	sub.SetPendingLimits(asking, asks)
	ln.mu.Lock()
	ln.sub = sub
	ln.mu.Unlock()
	return allowed(ctx, nc, before, subject)
}

// Guard implements transport.Guarded.
func (ln *listener) Guard(d transport.Door) {
	ln.start.Do(func() {
		ln.door = d
		close(ln.started)
	})
}

// asked is called by package nats with each request, one after the other.
func (ln *listener) asked(m *nats.Msg) {
	select {
	case <-ln.started:
	case <-ln.closed:
		return
	}
	if checkInbox(m.Reply) != nil {
		return // a request of this form gets no answer
	}
	c := newConn(ln.link, ln.address)
	c.out.begin(m.Reply)
	if err := ln.take(c, m); err != nil {
		c.out.send(kindRefusal, short(err.Error()), &c.in.taken)
		c.Close()
	}
}

// take opens a Wire for a request. The error is the reason for a refusal.
func (ln *listener) take(c *conn, m *nats.Msg) error {
	g, err := parseGreeting(m.Data)
	switch {
	case err != nil:
		return err
	case g.tls && ln.tls == nil:
		return errors.New("the ends of this wire do no TLS here; dial without")
	case !g.tls && ln.tls != nil:
		return errors.New("the ends of this wire do TLS here; dial with nats+tls:// or a TLS configuration")
	case len(ln.waiting) == backlog: // only this goroutine adds one
		return fmt.Errorf("%d wires wait to be accepted already", backlog)
	}
	if err := ln.admit(c); err != nil {
		return err
	}
	if err := c.subscribe(); err != nil {
		return err
	}
	close(c.opened)
	c.open(m.Reply, g)
	if err := c.out.send(kindWelcome, helloMessage{ln.tls != nil, window}.appendTo(nil), &c.in.taken); err != nil {
		return err
	}
	ln.queue(c)
	return nil
}

// admit asks the door.
func (ln *listener) admit(c *conn) error {
	if ln.door == nil {
		return nil
	}
	p, err := ln.door.Enter(c.remote, func() { c.Close() })
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.place = p
	c.mu.Unlock()
	return nil
}

// queue puts a Wire into the queue for Accept.
func (ln *listener) queue(c *conn) {
	w := wire.Wire(nil)
	if ln.tls == nil {
		w = newWire(c)
	} else {
		w = newSecretWire(c, tls.Server(c, ln.tls))
	}
	ln.waiting <- w // there is room
	select {
	case <-ln.closed: // possibly too late for end to find the queued Wire
		w.Close()
	default:
	}
}

// Accept implements wire.Listener.
func (ln *listener) Accept() (wire.Wire, error) {
	select {
	case <-ln.closed:
	default:
		ln.Guard(nil) // unless it was called before
		select {
		case w := <-ln.waiting:
			return w, nil
		case <-ln.closed:
		}
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return nil, fmt.Errorf("natswire: accept at %s: %w", transport.ShowURL(ln.url), ln.why)
}

// disconnected implements linkUser.
func (ln *listener) disconnected(err error, forGood bool) {
	if forGood {
		ln.end(err)
	}
}

// Close implements wire.Listener.
func (ln *listener) Close() error {
	ln.end(net.ErrClosed)
	return nil
}

// end closes the listener, and the wires that are not accepted yet. Only the first reason counts.
func (ln *listener) end(why error) {
	ln.once.Do(func() {
		ln.mu.Lock()
		ln.why = why
		sub := ln.sub
		ln.mu.Unlock()
		close(ln.closed)
		if sub != nil {
			sub.Unsubscribe() // an error means that the connection has ended
		}
		for {
			select {
			case w := <-ln.waiting:
				w.Close()
				continue
			default:
			}
			break
		}
		ln.link.remove(ln)
	})
}

// Private implements wire.Private: without TLS, the operator of the NATS server can read the wires.
func (ln *listener) Private() bool { return ln.tls != nil }

// URL implements wire.Listener.
func (ln *listener) URL() string { return ln.url }
