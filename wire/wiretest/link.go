package wiretest

import (
	"io"
	"net"
	"time"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// Link is a path with one bottleneck, such as a slow line behind a fast network, which several
// connections may share. It has two independent directions. In each of them bytes wait in one
// queue, first in and first out, pass at a rate, and are then in flight for a delay, at any number
// of bytes at once. [Link.Pipe] and [Link.Conn] are connections through it, [Link.Proxy] and
// [Link.ProxyUDP] stand before a server. It is safe for concurrent use, and need not be closed.
//
// A stream is divided into segments of 1,448 bytes, or of the number of bytes that pass in 100 µs
// if that is more. Headers do not count.
//
// All connections with data to send put a segment into the queue in turn. When the queue is full
// they wait, as though the congestion control of each knew it, unless [Lane.Drop] is set. There is
// no congestion control and no slow start: a connection that sends as fast as it can fills the
// queue.
//
// All computations use the times of the schedule, so that a late wake-up does not reduce the rate.
// Within [testing/synctest] the connections of Pipe are exact to the nanosecond.
type Link struct {
	out, in *lane // these lock themselves
	buffer  int   // fixed
}

// NewLink returns a Link. Its schedule starts at the call. Negative numbers in cfg stand for 0.
func NewLink(cfg LinkConfig) *Link {
	l := &Link{buffer: cfg.Buffer}
	if l.buffer <= 0 {
		l.buffer = DefaultLinkBuffer
	}
	now := time.Now()
	out, in := newSchedule(cfg.Out), newSchedule(cfg.In)
	l.out = newLane(cfg.Out, now, out, in, seededChance{cfg.Seed, 0})
	l.in = newLane(cfg.In, now, in, out, seededChance{cfg.Seed, 1})
	return l
}

// Stats returns the counters of the bottleneck in both directions.
func (l *Link) Stats() (out, in LaneStats) { return l.out.stats(), l.in.stats() }

// Pipe returns both ends of a new connection through l; [wire.FromConn] makes a Wire of each. Bytes
// from a to b cross the direction Out. It needs no goroutine and no socket, so it suits tests with
// [testing/synctest], if l was made within the bubble.
//
// Write accepts up to LinkConfig.Buffer bytes beyond the free room of the queue. Arrived bytes wait
// for Read; at 1 MiB the sender stops. Close loses nothing that was written: the other end reads
// it, and then io.EOF. Bytes sent to a closed end are lost, and Write fails with an error that
// wraps [syscall.EPIPE] once io.EOF can be read.
func (l *Link) Pipe() (a, b net.Conn) {
	out, in := l.out.newFlow(l.buffer, false), l.in.newFlow(l.buffer, false)
	return newLinkConn(out, in), newLinkConn(in, out)
}

// Conn returns c behind l: written bytes cross the direction Out on the way to c, and bytes read
// from c cross In. The result owns c. Closing the result ends both: written bytes still arrive at
// c, which is then closed. c is also closed when it fails. Otherwise the result is like
// [Link.Pipe], except for two goroutines, which end with c.
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
