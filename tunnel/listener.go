package tunnel

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
)

// defaultBacklog is the default Backlog of a ListenConfig.
const defaultBacklog = 128

// ListenConfig configures a [Listener]. The zero ListenConfig is ready to use.
type ListenConfig struct {
	// Backlog is how many connections of all peers together may wait for Accept; one more is
	// refused with ErrOverloaded. 0 stands for 128. A negative value means none: a connection
	// without a waiting Accept is refused.
	Backlog int
}

// Listen registers a function at svc, under a descriptive name, and returns a listener for its
// calls: Accept returns them as connections. It panics if [asterisque.Service.Handle] does: if the
// number is taken, or while svc is served; and if svc is nil.
//
// opts are for the function. [asterisque.WithConcurrency] bounds the number of connections, those
// that wait for Accept included. [asterisque.WithInline] must not be among them.
func Listen(svc *asterisque.Service, function uint16, name string, opts ...asterisque.HandlerOption) *Listener {
	return ListenConfig{}.Listen(svc, function, name, opts...)
}

// Listen is the function [Listen] with this configuration.
func (c ListenConfig) Listen(svc *asterisque.Service, function uint16, name string, opts ...asterisque.HandlerOption) *Listener {
	if svc == nil {
		panic(fmt.Sprintf("tunnel: Listen for function %d %q of a nil Service: make one with asterisque.NewService", function, name))
	}
	if c.Backlog == 0 {
		c.Backlog = defaultBacklog
	}
	l := &Listener{addr: Addr(function), backlog: int64(max(c.Backlog, 0)), arrivals: make(chan acceptedConn), closed: make(chan struct{})}
	svc.Handle(function, name, l.handle, opts...)
	return l
}

// Listener is a [net.Listener] for the calls of one function as connections. Its methods may be
// called concurrently. It may be used before its service is served, and while it is, by any number
// of sessions.
type Listener struct {
	addr    Addr  // these are fixed
	backlog int64 // how many connections may wait

	arrivals chan acceptedConn // passes connections to Accept, in the order of their arrival
	waiting  atomic.Int64      // how many wait for Accept
	closed   chan struct{}
	closing  sync.Once
}

// acceptedConn is a connection for Accept.
type acceptedConn struct {
	conn   *Conn
	waited bool // it was counted as waiting
}

// Accept waits for the next connection, a [Conn] with a known session. After Close the error is a
// [net.ErrClosed].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, l.closedError()
	default:
	}
	select {
	case a := <-l.arrivals:
		if a.waited {
			l.waiting.Add(-1)
		}
		return a.conn, nil
	case <-l.closed:
		return nil, l.closedError()
	}
}

// Close ends Accept. Connections that wait for it are refused with ErrUnavailable, and so are later
// ones: the function stays in its Service. Accepted connections stay open. Repeated calls return
// nil.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the number of the function: an [Addr].
func (l *Listener) Addr() net.Addr { return l.addr }

func (l *Listener) closedError() error {
	return &net.OpError{Op: "accept", Net: network, Addr: l.addr, Err: net.ErrClosed}
}

// handle is the handler of the function. It returns when the connection is closed, or the call is
// over.
func (l *Listener) handle(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
	c := NewConn(p, asterisque.SessionOf(ctx))
	if err := l.offer(ctx, c); err != nil {
		return nil, err
	}
	return nil, c.Wait(ctx)
}

// offer waits until c is accepted.
func (l *Listener) offer(ctx context.Context, c *Conn) error {
	select {
	case <-l.closed:
		return l.refuseClosed()
	case l.arrivals <- acceptedConn{conn: c}: // Accept is waiting
		return nil
	default:
	}
	if l.waiting.Add(1) > l.backlog {
		l.waiting.Add(-1)
		return refused(asterisque.ErrOverloaded, "%v accepts no connection now: %d wait already, the limit of its ListenConfig.Backlog; dial again later", l.addr, l.backlog)
	}
	select {
	case l.arrivals <- acceptedConn{conn: c, waited: true}:
		return nil
	case <-l.closed:
		l.waiting.Add(-1)
		return l.refuseClosed()
	case <-ctx.Done():
		l.waiting.Add(-1)
		return ctx.Err()
	}
}

func (l *Listener) refuseClosed() error {
	return refused(asterisque.ErrUnavailable, "the listener at %v is closed", l.addr)
}
