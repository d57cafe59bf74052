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
// concurrently: several Reads get different bytes, and each Write stays in one piece.
//
// An error of Read, Write and similar methods is io.EOF, or a *[net.OpError] with the cause:
// [os.ErrDeadlineExceeded], which is a timeout of [net.Error]; [net.ErrClosed] after Close;
// [pipe.ErrEnded] for a Write after CloseWrite; [asterisque.ErrStopped] or [pipe.ErrClosed] for a
// Write when the peer does not read any more, or has closed; [ErrMissing]; an error of the
// io.Reader or io.Writer of ReadFrom and WriteTo, unchanged; and otherwise the [asterisque.Abort]
// that has ended the call or the session.
type Conn struct {
	pipe          *pipe.Pipe // these are fixed
	session       *asterisque.Session
	local, remote net.Addr
	closed        chan struct{} // is closed by Close

	closing sync.Once
	in      receiveSide
	out     sendSide
}

// NewConn returns a connection over p. Nothing else may send or receive on p. s is the session of
// p, for the addresses; it may be nil. NewConn panics if p is nil.
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

// Session returns the session below the connection, for example to identify the peer of an accepted
// connection: Session().Peer(). It is nil if the session is unknown: after NewConn without one, and
// for connections that were dialled on a Caller other than an [asterisque.Session].
func (c *Conn) Session() *asterisque.Session { return c.session }

// LocalAddr returns the address of this side of the first Wire of the session, and an [Addr] if the
// session is unknown. All connections of a session have the same.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other side, as LocalAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Read waits for bytes, and returns those of at most one Block. After the last one, when the peer
// has closed the connection or its direction, it returns io.EOF.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.failed("read", err)
}

// WriteTo writes the received bytes to w, with a Write for each Block, until the end of the stream.
// It returns the number of bytes written, and the first error of either side but io.EOF. Bytes that
// w has not accepted are lost. No deadline ends a Write of w.
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

// Write sends b, and keeps no part of it. It blocks for the window of the connection and for the
// limits of the session. When it returns, b has been accepted, not yet received. After an error, n
// is the number of bytes of b that will be received. b is sent at once, except for the end of a
// Write of 32 KiB or more, which may be sent with the next Write if that follows without delay.
func (c *Conn) Write(b []byte) (n int, err error) {
	n, err = c.out.write(b)
	return n, c.failed("write", err)
}

// ReadFrom writes the bytes of r until its end, with a Write for each Read, so that bytes are not
// held back while r blocks. It returns the number of bytes written, and the first error of either
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
// that blocks here fails. The other direction stays open. CloseWrite does not block; repeated calls
// return nil.
func (c *Conn) CloseWrite() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.out.end(pipe.ErrEnded)
	return nil
}

// CloseRead stops reading: unread bytes are discarded, Read returns io.EOF, and the peer's Write
// fails with [asterisque.ErrStopped]. The other direction stays open. CloseRead does not block;
// repeated calls return nil.
func (c *Conn) CloseRead() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.in.end(io.EOF)
	return nil
}

// Close ends both directions. Bytes written before still arrive, as long as the session lasts.
// Reads and Writes that block fail with net.ErrClosed. The call ends when the other side has
// closed, too. Close does not block; repeated calls return nil.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.in.end(net.ErrClosed)
		c.out.end(net.ErrClosed)
	})
	return nil
}

// Wait blocks until the connection is closed on this side, and the session has accepted all written
// bytes: a handler with a connection on its pipe can then return without losing bytes. It returns
// nil, or the error of ctx, which ends the wait.
func (c *Conn) Wait(ctx context.Context) error {
	// the first may be closed by CloseWrite
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

// SetReadDeadline bounds Reads: those that block, and later ones. A Read that reaches its deadline
// fails with os.ErrDeadlineExceeded, and loses nothing; later Reads do so at once, until another
// deadline is set. The zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.in.deadline) }

// SetWriteDeadline does the same for Writes. Bytes that a Write has accepted are sent nevertheless.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.out.deadline) }

func (c *Conn) setDeadlines(t time.Time, all ...*connDeadline) error {
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

// failed returns err as the error of an operation. After Close it returns net.ErrClosed.
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
