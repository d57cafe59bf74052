package tunnel

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
)

// Conn is a pipe as a [net.Conn], on either side of the call. All methods may be called
// concurrently: of several Reads each gets other bytes, and of several Writes each stays in one
// piece.
//
// An error of Read, Write and the like is io.EOF, or a *[net.OpError] with what has happened: one
// that is [os.ErrDeadlineExceeded] and a timeout of [net.Error]; [net.ErrClosed] after Close;
// [pipe.ErrEnded] for a Write after CloseWrite; [asterisque.ErrStopped] or [pipe.ErrClosed] for a
// Write when the peer reads no more, or has closed; [ErrMissing]; an error of the io.Reader or
// io.Writer of ReadFrom and WriteTo, as it is; and otherwise the [asterisque.Abort] that has ended
// the call or the session.
type Conn struct {
	pipe          *pipe.Pipe // these are fixed
	session       *asterisque.Session
	local, remote net.Addr
	closed        chan struct{} // is closed by Close

	closing sync.Once
	in      incoming
	out     outgoing
}

// NewConn returns a connection over p, on which nobody may send or receive besides. s is the
// session of p, which is asked for the addresses. It may be nil. NewConn panics if p is nil.
//
// On the side that has opened the pipe, the call ends when its handler returns. A handler that
// makes a Conn of its pipe returns after [Conn.Wait].
func NewConn(p *pipe.Pipe, s *asterisque.Session) *Conn {
	if p == nil {
		panic("tunnel: NewConn of a nil pipe: look at the error of Open first")
	}
	c := &Conn{pipe: p, session: s, closed: make(chan struct{})}
	c.local, c.remote = addrs(s, p.Function())
	c.in.init(p)
	c.out.init(p)
	return c
}

// Session returns the session that the connection runs through, so that one that was accepted tells
// whose it is: Session().Peer(). It is nil where it is not known: after NewConn without one, and of
// connections that were dialled on what is no [asterisque.Session].
func (c *Conn) Session() *asterisque.Session { return c.session }

// LocalAddr returns the address of this side of the Wire, as it was at first, and an [Addr] if the
// session is not known. All connections of a session have the same.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns that of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Read waits for bytes, and returns those of at most one Block. After the last one, when the peer
// has closed the connection or its direction, it returns io.EOF.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.failed("read", err)
}

// WriteTo writes what comes to w, with a Write for each Block, until the end of the stream. It
// returns the number of bytes written, and the first error of either side but io.EOF. What w has
// refused is lost. No deadline ends a Write of w.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	for {
		b, payload, err := c.in.next()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, c.failed("read", err)
		}
		k, err := w.Write(payload)
		b.Release()
		n += int64(k)
		if err == nil && k < len(payload) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return n, err
		}
	}
}

// Write sends b, and keeps no part of it. It waits for the window of the connection and for the
// limits of the session. When it returns, b has been accepted, not yet received. Of an error, n
// says how much of b will be received. b leaves at once, but for the end of a Write of 32 KiB or
// more: that waits for the next Write, if there is one without delay.
func (c *Conn) Write(b []byte) (n int, err error) {
	n, err = c.out.write(b)
	return n, c.failed("write", err)
}

// ReadFrom writes what r returns until its end, with a Write for each Read, so that nothing is held
// back while r has no more. It returns the number of bytes written, and the first error of either
// side but io.EOF. No deadline ends a Read of r.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	mem := buffers.Get().(*buffer)
	defer buffers.Put(mem)
	room := mem[:c.out.most]
	for {
		k, readErr := r.Read(room)
		if k > 0 {
			k, err = c.Write(room[:k])
			if n += int64(k); err != nil {
				return n, err
			}
		}
		if readErr == io.EOF {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
}

// CloseWrite ends this direction: the peer's Read returns io.EOF after the last byte, and a Write
// that waits here fails. The other direction goes on. CloseWrite does not wait; repeated calls
// return nil.
func (c *Conn) CloseWrite() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.out.end(pipe.ErrEnded)
	return nil
}

// CloseRead says that no more is wanted: what waits is discarded, Read returns io.EOF, and the
// peer's Write fails with [asterisque.ErrStopped]. The other direction goes on. CloseRead does not
// wait; repeated calls return nil.
func (c *Conn) CloseRead() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.in.end(io.EOF)
	return nil
}

// Close ends both directions. What was written still arrives, as long as the session lasts. Reads
// and Writes that wait fail with net.ErrClosed. The call is over when the other side has closed,
// too. Close does not wait; repeated calls return nil.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.in.end(net.ErrClosed)
		c.out.end(net.ErrClosed)
	})
	return nil
}

// Wait waits until the connection is closed on this side, and all that was written is with the
// session: a handler that has made the connection of its pipe returns then, and nothing is lost. It
// returns nil, or the error of ctx, which ends the wait.
func (c *Conn) Wait(ctx context.Context) error {
	// the first may come by CloseWrite
	for _, over := range []<-chan struct{}{c.out.over, c.closed} {
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// SetDeadline sets the deadlines of both directions.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.in.deadline, &c.out.deadline)
}

// SetReadDeadline bounds Reads: those that wait, and those that begin later. One that reaches its
// deadline fails with os.ErrDeadlineExceeded, and loses nothing; later ones do so at once, until
// another deadline is set. The zero time is none.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.in.deadline) }

// SetWriteDeadline does the same for Writes. What a Write has accepted is sent nevertheless.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.out.deadline) }

func (c *Conn) setDeadlines(t time.Time, all ...*deadline) error {
	if c.isClosed() {
		return c.failed("set", net.ErrClosed)
	}
	for _, d := range all {
		d.set(t)
	}
	return nil
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// failed returns err as the error of an operation. After Close that is why.
func (c *Conn) failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case c.isClosed():
		err = net.ErrClosed
	case err == io.EOF:
		return err
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.remote, Err: err}
}
