package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// pingPongFloor returns a bare TCP connection on which one side writes, and the other sends back
// all bytes.
func pingPongFloor() *impl {
	return &impl{name: "floor-pingpong", link: (*pingPongLink)(nil), callers: 1, paths: true, listen: func(_ context.Context, n needs) (host, error) {
		return listenTCP(n.path, func(c net.Conn) {
			buf := make([]byte, 4<<10)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if _, err := c.Write(buf[:n]); err != nil {
					return
				}
			}
		}, func(c net.Conn) link { return &pingPongLink{c} })
	}}
}

type pingPongLink struct{ c net.Conn }

func (l *pingPongLink) close() { l.c.Close() }

func (l *pingPongLink) newCaller(request []byte, _ bool) (op, error) {
	buf := make([]byte, len(request))
	return func() error {
		if _, err := l.c.Write(request); err != nil {
			return err
		}
		if _, err := io.ReadFull(l.c, buf); err != nil {
			return err
		}
		return echoed(buf, request)
	}, nil
}

func (l *pingPongLink) ask(request []byte) (first time.Duration, err error) {
	begin := time.Now()
	if _, err := l.c.Write(request); err != nil {
		return 0, err
	}
	return firstByte(l.c, begin, len(request))
}

// firstByte reads n bytes and returns the time from begin to the first one.
func firstByte(r io.Reader, begin time.Time, n int) (first time.Duration, err error) {
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf[:1]); err != nil {
		return 0, err
	}
	first = time.Since(begin)
	_, err = io.ReadFull(r, buf[1:])
	return first, err
}

// copyFloor returns a bare TCP connection. Its accepting side reads as fast as it can. Several
// streams are several goroutines that write to it in turn.
func copyFloor() *impl {
	return &impl{name: "floor-copy", link: (*copyLink)(nil), kinds: []streamKind{bulk}, paths: true, listen: func(_ context.Context, needs needs) (host, error) {
		received := make(chan int64, 1)
		return listenTCP(needs.path, func(c net.Conn) {
			var n int64
			r, buf := needs.meter.reader(c), make([]byte, bulkWrite)
			for {
				k, err := r.Read(buf)
				if n += int64(k); err != nil {
					received <- n
					return
				}
			}
		}, func(c net.Conn) link { return &copyLink{c: c, received: received} })
	}}
}

type copyLink struct {
	c        net.Conn
	received chan int64

	mu      sync.Mutex
	senders int // guarded by mu: those that have not finished
}

func (l *copyLink) close() { l.c.Close() }

func (l *copyLink) open(streamKind) (sender, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.senders++
	return (*copySender)(l), nil
}

// copySender is one of the writers to the connection.
type copySender copyLink

func (s *copySender) send(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.c.Write(b)
	return err
}

// finish closes the connection with the last of the senders, and then returns the total of received
// bytes.
func (s *copySender) finish() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.senders--; s.senders > 0 {
		return 0, nil
	}
	if err := s.c.Close(); err != nil {
		return 0, err
	}
	return <-s.received, nil
}

// twoSocketsFloor returns two bare TCP connections, one for calls and one for bulk: a call beside a
// stream that shares only the machine with it.
func twoSocketsFloor() *impl {
	return &impl{
		name: "floor-two-sockets", link: (*twoSocketsLink)(nil), callers: 1, kinds: []streamKind{background}, paths: true, without: []string{"call-64B", "sessions-64B", "connect", "idle-sessions", "path-first-50ms-100Mbit"},
		listen: func(ctx context.Context, n needs) (host, error) {
			calls, err := pingPongFloor().listen(ctx, n)
			if err != nil {
				return nil, err
			}
			copies, err := copyFloor().listen(ctx, n)
			if err != nil {
				calls.close()
				return nil, err
			}
			return &twoSocketsHost{calls, copies}, nil
		},
	}
}

type twoSocketsHost struct{ calls, copies host }

func (h *twoSocketsHost) dial(ctx context.Context) (link, error) {
	calls, err := h.calls.dial(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := h.copies.dial(ctx)
	if err != nil {
		calls.close()
		return nil, err
	}
	return &twoSocketsLink{calls.(*pingPongLink), copies.(*copyLink)}, nil
}

func (h *twoSocketsHost) close() {
	h.calls.close()
	h.copies.close()
}

type twoSocketsLink struct {
	*pingPongLink
	copies *copyLink
}

func (l *twoSocketsLink) open(kind streamKind) (sender, error) { return l.copies.open(kind) }

func (l *twoSocketsLink) close() {
	l.pingPongLink.close()
	l.copies.close()
}

// tcpHost serves each connection that it accepts with a goroutine.
type tcpHost struct {
	ln      net.Listener
	path    *path
	addr    string // where to dial
	link    func(net.Conn) link
	running sync.WaitGroup // ends when the listener and all dialling sides are closed
}

// listenTCP returns a host that runs serve for each accepted connection, and makes links of dialled
// ones, over a path. The connection is closed when serve returns, which has to happen when the
// other side closes.
func listenTCP(p *path, serve func(net.Conn), link func(net.Conn) link) (host, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr, err := p.tcp(ln.Addr().String())
	if err != nil {
		ln.Close()
		return nil, err
	}
	h := &tcpHost{ln: ln, path: p, addr: addr, link: link}
	h.running.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			h.running.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	return h, nil
}

func (h *tcpHost) dial(ctx context.Context) (link, error) {
	c, err := h.path.dial(ctx, h.addr)
	if err != nil {
		return nil, err
	}
	return h.link(c), nil
}

func (h *tcpHost) close() {
	h.ln.Close()
	h.running.Wait()
}
