package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// piece is how many bytes the link accepts at a time.
const piece = 1 << 10

// slack is how late a timer may be without a loss of bandwidth.
const slack = 5 * time.Millisecond

// link is a connection with a limited rate for sending. Reading is not limited.
type link struct {
	net.Conn         // these are fixed
	rate     float64 // bytes a second
	closed   chan struct{}
	once     sync.Once // closes closed

	free time.Time // the time when all written bytes will have left; belongs to the writer
}

// Write sends b in small pieces. It waits before each until the one before has left, or until
// Close.
func (l *link) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if !l.wait() {
			return n, net.ErrClosed
		}
		k, err := l.Conn.Write(b[n:min(n+piece, len(b))])
		n += k
		if err != nil {
			return n, err
		}
		l.busy(k)
	}
	return n, nil
}

// wait waits until the link is free, and reports false if it was closed first.
func (l *link) wait() bool {
	d := time.Until(l.free)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.closed:
		return false
	}
}

// busy records that n bytes are leaving.
func (l *link) busy(n int) {
	if earliest := time.Now().Add(-slack); l.free.Before(earliest) {
		l.free = earliest // unused time is lost
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
}

// Close ends the wait of Write, and closes the connection.
func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// slowWire is the Wire over a link. It is a [wire.TryWriter], by which the session detects that the
// link is busy, and may drop readings.
type slowWire struct {
	wire.Wire
	link *link
}

// dialSlow connects to address over a link that sends at rate, in bytes a second.
func dialSlow(ctx context.Context, address string, rate float64) (wire.Wire, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: c, rate: rate, closed: make(chan struct{})}
	return &slowWire{wire.FromConn(l), l}, nil
}

// WriteBatch implements wire.BatchWriter, as every Wire of FromConn does.
func (w *slowWire) WriteBatch(batch []byte) error { return w.Wire.(wire.BatchWriter).WriteBatch(batch) }

// TryWriteBatch implements wire.TryWriter: a piece if the link is free, and otherwise nothing.
func (w *slowWire) TryWriteBatch(batch []byte) (int, error) {
	if time.Now().Before(w.link.free) {
		return 0, nil
	}
	n := min(piece, len(batch))
	if err := w.WriteBatch(batch[:n]); err != nil {
		return 0, err
	}
	return n, nil
}
