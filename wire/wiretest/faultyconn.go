package wiretest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// Conn is one end of a connection with faults. It is a [net.Conn], and safe for concurrent use.
type Conn struct {
	under         io.ReadWriteCloser // these are fixed
	local, remote net.Addr

	once sync.Once // closes under

	mu      sync.Mutex
	changed sync.Cond // uses mu; signals each change of the fields below

	out, in faultyLine // guarded by mu
	closed  bool       // guarded by mu; Close was called
	cut     bool       // guarded by mu; the connection was lost before Close was called
}

// farewell is how long Close waits for the other end to read the bytes that have arrived.
const farewell = time.Second

// The errors of a Conn after its end.
var (
	errHungUp = fmt.Errorf("wiretest: the connection was truncated: %w", syscall.EPIPE)
	errClosed = fmt.Errorf("wiretest: %w", net.ErrClosed)
)

// FaultyConn returns c with faults; [wire.FromConn] makes a Wire of it. The Conn owns c. One end of
// a connection is enough: Faults has both directions.
//
// c has to meet the requirements of wire.FromConn.
//
// Without a delay, Write returns when c has taken the bytes, and Read reads at most 32 KiB ahead.
// With a delay, an error of c during a Write is returned by a later Write. Deadlines work over any
// c.
//
// The Conn has to be closed, which ends its two goroutines. All waits are on a [sync.Cond] and on
// timers, so it suits tests with [testing/synctest].
func FaultyConn(c io.ReadWriteCloser, f Faults) *Conn {
	conn := &Conn{under: c}
	conn.local, conn.remote = transport.Addrs(c, "faulty")
	conn.changed.L = &conn.mu
	conn.out = conn.line(f.Out, seededChance{f.Seed, 0})
	conn.in = conn.line(f.In, seededChance{f.Seed, 1})
	go conn.send() // these two end with Close
	go conn.receive()
	return conn
}

func (c *Conn) line(d Direction, dice seededChance) faultyLine {
	l := faultyLine{faults: d, dice: dice, mu: &c.mu, changed: &c.changed}
	if d.slow() {
		l.room = underWay
	}
	return l
}

// send writes the bytes from the outgoing line, to its end.
func (c *Conn) send() {
	b := make([]byte, chunk)
	for {
		n, err := c.out.take(b)
		if err == nil {
			_, err = c.under.Write(b[:n])
		}
		if err != nil {
			if !c.lost(err) {
				c.fail(err)
			}
			return
		}
		c.out.arrived()
	}
}

// fail ends writing, unless the loss is to stay hidden.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.out.vanished {
		c.out.failLocked(err, err)
	}
}

// receive reads the bytes for the incoming line, to its end.
func (c *Conn) receive() {
	b := make([]byte, chunk)
	for {
		n, err := c.under.Read(b)
		if _, refused := c.in.put(b[:n]); refused != nil {
			return
		}
		if err != nil {
			c.mu.Lock()
			c.in.finishLocked(err)
			c.mu.Unlock()
			return
		}
	}
}

// Read implements net.Conn. It ends with io.EOF when the other end has closed, with an error that
// wraps net.ErrClosed after Close, and with one that wraps syscall.ECONNRESET after a cut.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.take(p)
	if err == nil {
		c.in.arrived()
		return n, nil
	}
	if c.lost(err) {
		return c.in.take(p) // which has the reason
	}
	return n, err
}

// Write implements net.Conn. It keeps no part of b. Errors are as those of Read, and after the
// other end has closed those of the connection below.
func (c *Conn) Write(b []byte) (int, error) { return c.out.put(b) }

// Close implements net.Conn. It ends Read and Write. With a delay it waits until the bytes in
// flight have arrived, for at most a second if the other end does not read; stalled bytes are lost.
// The connection below is closed in any case, also if it is half-open.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.in.failLocked(errClosed, errClosed)
	c.in.takeErr, c.out.putErr = errClosed, errClosed // in place of any earlier errors
	c.leaveLocked()
	c.out.failLocked(errClosed, errClosed)
	c.mu.Unlock()
	return c.closeUnder()
}

// leaveLocked waits until the bytes in flight have arrived, or cannot.
func (c *Conn) leaveLocked() {
	o := &c.out
	accepted := o.sent
	if o.writing {
		o.recallLocked()
		accepted = o.begin
	}
	if o.room == 0 || accepted <= o.passed {
		return
	}
	o.finishLocked(io.EOF)
	limit := o.emptyLocked().Add(farewell)
	for !o.stalled && !o.vanished && refusal(o.takeErr, limit) == nil {
		o.waitLocked(limit)
	}
}

// lost ends the connection if err is the error of a fault.
func (c *Conn) lost(err error) bool {
	switch err {
	case errCut:
		c.down(errCut, errCut)
	case errTruncated:
		c.down(io.EOF, errHungUp)
	default:
		return false
	}
	return true
}

// down ends the connection at both ends.
func (c *Conn) down(readErr, writeErr error) {
	c.mu.Lock()
	c.cut = c.cut || !c.closed && writeErr == errCut
	c.in.failLocked(errClosed, readErr)
	c.out.failLocked(writeErr, errClosed)
	c.mu.Unlock()
	c.closeUnder()
}

// closeUnder closes the connection below, once. The first caller gets the error.
func (c *Conn) closeUnder() (err error) {
	c.once.Do(func() { err = c.under.Close() })
	return err
}

// Cut loses the connection, with all bytes in flight. Read and Write fail with an error that wraps
// [syscall.ECONNRESET]. The connection below is closed; if it is TCP, the other end receives a
// reset too.
func (c *Conn) Cut() {
	if t, ok := c.under.(*net.TCPConn); ok {
		reset(t)
	}
	c.down(errCut, errCut)
}

// reset makes Close of c send a reset to the other end.
func reset(c *net.TCPConn) { c.SetLinger(0) }

// Stall stops both directions until Heal: writing and reading block.
func (c *Conn) Stall() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.stalled, c.in.stalled = true, true
	c.changed.Broadcast()
}

// Heal ends a stall by Stall or [Direction.StallAfter]. Nothing is lost by a stall.
func (c *Conn) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.resumeLocked()
	c.in.resumeLocked()
}

// HalfOpen silently loses the bytes in flight and all later ones, in both directions: Write still
// succeeds, Read blocks forever, and neither end is closed. Only Cut and Close end this state.
func (c *Conn) HalfOpen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.vanishLocked()
	c.in.vanishLocked()
}

// wasCut reports whether the connection was lost rather than closed.
func (c *Conn) wasCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// progress returns how many bytes were read and written.
func (c *Conn) progress() (in, out uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.in.passed), uint64(c.out.passed)
}

// waitUntilClear waits until the connection is neither stalled nor half-open, or is lost or closed.
func (c *Conn) waitUntilClear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.out.stalled || c.out.vanished) && c.out.takeErr == nil {
		c.changed.Wait()
	}
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(&t, nil) }

// SetWriteDeadline implements net.Conn. A Write that times out returns how many bytes cannot be
// recalled.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(nil, &t) }

func (c *Conn) setDeadlines(read, write *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	if read != nil {
		c.in.takeBy = *read
	}
	if write != nil {
		c.out.putBy = *write
	}
	c.changed.Broadcast()
	return nil
}

// LocalAddr implements net.Conn. It is never nil.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn. It is never nil.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }
