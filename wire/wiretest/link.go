package wiretest

import (
	"io"
	"net"
	"time"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// Link is a path with one bottleneck, such as a slow line behind a fast network, which several
// connections may share. It has two directions, which know nothing of each other. In each of them
// what is sent waits in one queue, first in and first out, passes with a rate, and is then under
// way for a delay, at any number of bytes at once. [Link.Pipe] and [Link.Conn] are connections
// through it, [Link.Proxy] and [Link.ProxyUDP] stand before a server. It is safe for concurrent
// use, and needs no closing.
//
// A stream is divided into segments of 1,448 bytes, or of as many as pass in 100 µs if these are
// more. Headers count for nothing. All connections that have something to send put a segment into
// the queue in turn. When the queue is full they wait, as though the congestion control of each
// knew it, unless [Lane.Drop] says otherwise. There is no congestion control and no slow start: a
// connection that sends as fast as it can fills the queue.
//
// All is reckoned with the times of the schedule, so that a wait that ends late makes nothing
// slower. Within [testing/synctest] the connections of Pipe are exact to the nanosecond.
type Link struct {
	out, in *lane // these lock themselves
	buffer  int   // fixed
}

// NewLink returns a Link whose schedule begins now. Negative numbers in cfg stand for 0.
func NewLink(cfg LinkConfig) *Link {
	l := &Link{buffer: cfg.Buffer}
	if l.buffer <= 0 {
		l.buffer = DefaultLinkBuffer
	}
	now := time.Now()
	out, in := newSchedule(cfg.Out), newSchedule(cfg.In)
	l.out = newLane(cfg.Out, now, out, in, dice{cfg.Seed, 0})
	l.in = newLane(cfg.In, now, in, out, dice{cfg.Seed, 1})
	return l
}

// Stats returns what the bottleneck has done so far in both directions.
func (l *Link) Stats() (out, in LaneStats) { return l.out.stats(), l.in.stats() }

// Pipe returns both ends of a new connection through l; [wire.FromConn] makes a Wire of each. What
// a sends crosses the direction Out. It needs no goroutine and no socket, so it suits tests with
// [testing/synctest], if l was made within the bubble.
//
// Write takes as many bytes as LinkConfig.Buffer beyond those that the queue has room for. What has
// arrived waits for Read: once this is 1 MiB, no more is sent. Close loses nothing that was
// written: the other end reads it, and then io.EOF. Whatever is sent to an end that was closed is
// lost, and Write fails with an error that wraps [syscall.EPIPE] once io.EOF is there to be read.
func (l *Link) Pipe() (a, b net.Conn) {
	out, in := l.out.newFlow(l.buffer, false), l.in.newFlow(l.buffer, false)
	return newLinkConn(out, in), newLinkConn(in, out)
}

// Conn returns c behind l: what is written crosses the direction Out on its way to c, and what c
// reads crosses In. It owns c from now on. Closing the result ends both: what was written arrives
// at c, which is closed then, and also when c fails. It is like [Link.Pipe] for the rest, but for
// two goroutines, which end with c.
func (l *Link) Conn(c io.ReadWriteCloser) net.Conn {
	near, far := l.Pipe()
	conn := near.(*linkConn)
	conn.local, conn.remote = transport.Addrs(c, "link")
	go func() { // ends when near is closed, or when c fails
		io.Copy(c, far)
		c.Close()
	}()
	go func() { // ends with c
		io.Copy(far, c)
		far.Close()
	}()
	return near
}
