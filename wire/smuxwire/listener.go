package smuxwire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// listener is a Listener on connections that carry many wires.
type listener struct {
	ln   net.Listener // these are fixed
	url  string
	opts []Option

	start   sync.Once // starts acceptLoop
	waiting chan acceptResult
	closed  chan struct{}
	once    sync.Once // closes closed
}

// acceptResult holds the return values of Accept.
type acceptResult struct {
	w   wire.Wire
	err error
}

// Listen makes a Listener of ln. The Listener owns ln. Each connection becomes a [Mux], and Accept
// returns the wires that the peers open on any of them. url is the value that its URL returns. The
// options have been checked if an earlier [Server] with the same ones has succeeded; invalid ones
// are the error of Accept.
//
// ln may be a socket that another process has handed over, as [net.FileListener] makes one of
// [wire.InheritedFile]. For peers that dial "smux+tls://" there is a [tls.NewListener] around it,
// with the application protocol (ALPN) "asterisque.smux/1".
//
// The Listener is [transport.Guarded]: a node that serves it admits each connection before it
// spends resources on it, and each Wire.
func Listen(ln net.Listener, url string, opts ...Option) wire.Listener {
	return &listener{ln: ln, url: url, opts: opts, waiting: make(chan acceptResult), closed: make(chan struct{})}
}

// Guard implements transport.Guarded.
func (l *listener) Guard(d transport.Door) {
	l.start.Do(func() { go l.acceptLoop(d) }) // ends with ln, which Close closes
}

func (l *listener) acceptLoop(d transport.Door) {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			l.put(acceptResult{nil, fmt.Errorf("wire: %w", err)})
			select {
			case <-l.closed:
				return
			default:
				continue // it may pass
			}
		}
		l.take(c, d)
	}
}

// take makes a Mux of a connection, if d admits it.
func (l *listener) take(c net.Conn, d transport.Door) {
	var up atomic.Pointer[Mux]
	place, err := enter(d, c, func() {
		if m := up.Load(); m != nil {
			m.fail(errUnused)
		}
	})
	if err != nil {
		c.Close()
		return
	}
	transport.BoundUnsent(c)
	m, err := newMux(c, false, place, l.opts)
	if err != nil {
		l.put(acceptResult{nil, err})
		return
	}
	up.Store(m)
	go l.serve(m) // ends with m, or with l
}

var errUnused = errors.New("the connection carried no session for too long, or another connection needed its place")

// enter requests a place from d, if there is one. When the place is lost, the connection is cut,
// and then lost is called.
func enter(d transport.Door, c net.Conn, lost func()) (transport.Place, error) {
	if d == nil {
		return nil, nil
	}
	below := c
	if t, ok := c.(*tls.Conn); ok {
		below = t.NetConn() // Close of TLS would wait for the peer to read its close alert
	}
	return d.Enter(c.RemoteAddr(), func() {
		below.Close()
		lost()
	})
}

// serve passes the wires of m to Accept.
func (l *listener) serve(m *Mux) {
	for none := true; ; none = false {
		w, err := m.next(l.closed)
		switch {
		case err == nil:
			l.put(acceptResult{w, nil})
			continue
		case err == errStopped:
			m.leave()
			m.closeWaiting()
		case none && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed):
			// the failure would stay hidden otherwise
			l.put(acceptResult{wire.FromConn(failedConn{m.conn, m.Err()}), nil})
		}
		return
	}
}

// failedConn is the connection of a peer that failed before its first Wire.
type failedConn struct {
	*conn
	err error
}

// Read implements io.Reader.
func (f failedConn) Read([]byte) (int, error) { return 0, f.err }

// Write implements io.Writer.
func (f failedConn) Write([]byte) (int, error) { return 0, f.err }

// put waits for an Accept, or for Close.
func (l *listener) put(r acceptResult) {
	select {
	case l.waiting <- r:
	case <-l.closed:
		if r.w != nil {
			r.w.Close()
		}
	}
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	select {
	case <-l.closed:
	default:
		l.Guard(nil) // unless it was called before
		select {
		case r := <-l.waiting:
			return r.w, r.err
		case <-l.closed:
		}
	}
	return nil, fmt.Errorf("wire: accept at %s: %w", transport.ShowURL(l.url), net.ErrClosed)
}

// Close implements wire.Listener.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.ln.Close()
	})
	return err
}

// URL implements wire.Listener.
func (l *listener) URL() string { return l.url }
