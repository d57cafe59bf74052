package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// This file has the common part of the multiplexers of streams. They have no calls: a caller has
// its own stream, which stays open, and on which each message is behind its length and is sent in
// one Write. No echo is cheaper.

// muxSession is one end of a connection that carries streams.
type muxSession interface {
	open() (io.ReadWriteCloser, error)
	accept() (io.ReadWriteCloser, error)
	close()
}

// muxTransport makes sessions. accept and dial may be called concurrently.
type muxTransport interface {
	accept() (muxSession, error)
	dial() (muxSession, error)
	close()
}

// muxImpl returns a multiplexer as an implementation.
func muxImpl(name string, listen func(*path) (muxTransport, error)) *impl {
	return &impl{name: name, link: (*muxLink)(nil), listen: func(_ context.Context, n needs) (host, error) {
		t, err := listen(n.path)
		if err != nil {
			return nil, err
		}
		h := &muxHost{transport: t, needs: n, closing: make(chan struct{})}
		h.running.Go(h.accept)
		return h, nil
	}}
}

type muxHost struct {
	transport muxTransport
	needs     needs
	closing   chan struct{}  // closed by close
	running   sync.WaitGroup // accept, and one for each session and stream
	streams   atomic.Uint64  // opened by dialling sides; numbers the streams
	// of chan int64, by number: counts of the readers of ended streams
	tallies sync.Map

	mu       sync.Mutex
	accepted []muxSession // guarded by mu
}

// accept ends with the transport.
func (h *muxHost) accept() {
	for {
		s, err := h.transport.accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.accepted = append(h.accepted, s)
		h.mu.Unlock()
		h.running.Go(func() { h.serve(s) })
	}
}

// serve handles the streams of a session, and ends with it.
func (h *muxHost) serve(s muxSession) {
	defer s.close()
	for {
		c, err := s.accept()
		if err != nil {
			return
		}
		h.running.Go(func() {
			defer c.Close()
			h.take(c)
		})
	}
}

// Kinds of streams of muxHost only.
const (
	echoStream streamKind = 'e' // each message is sent back
	answer     streamKind = 'a' // as many bytes are sent back, once all have arrived
)

// preambleSize is the length of the start of a stream: its kind, and its number.
const preambleSize = 9

// take is the reader of one stream.
func (h *muxHost) take(c io.ReadWriteCloser) {
	var preamble [preambleSize]byte
	if _, err := io.ReadFull(c, preamble[:]); err != nil {
		return
	}
	var n int64
	switch streamKind(preamble[0]) {
	case echoStream:
		echoFrames(c)
	case answer:
		request := make([]byte, h.needs.ask)
		if _, err := io.ReadFull(c, request); err == nil {
			c.Write(request)
		}
	case messages, large:
		n = countMessages(c)
	case bulk, background:
		n, _ = drain(h.needs.meter.reader(c)) // the count of a failed stream is too low
	case stuck:
		<-h.closing
	case idle:
		h.needs.arrived.Add(1)
		c.Read(preamble[:]) // returns when the stream ends
	}
	if tally, ok := h.tallies.Load(binary.BigEndian.Uint64(preamble[1:])); ok {
		tally.(chan int64) <- n
	}
}

// echoFrames sends back all frames.
func echoFrames(c io.ReadWriter) {
	r := bufio.NewReader(c)
	var buf []byte
	for {
		var err error
		if buf, err = readFrame(r, buf); err != nil {
			return
		}
		if _, err = c.Write(buf); err != nil {
			return
		}
	}
}

// countMessages receives messages one by one and returns their total size. It is not inlined,
// otherwise its buffer would be on the stack of every stream.
//
//go:noinline
func countMessages(c io.Reader) (n int64) {
	r := bufio.NewReaderSize(c, bulkWrite)
	var buf []byte
	for {
		var err error
		if buf, err = readFrame(r, buf); err != nil {
			return n
		}
		n += int64(len(buf) - 4)
	}
}

func (h *muxHost) dial(context.Context) (link, error) {
	s, err := h.transport.dial()
	if err != nil {
		return nil, err
	}
	return &muxLink{h: h, s: s}, nil
}

func (h *muxHost) close() {
	close(h.closing)
	h.transport.close()
	h.mu.Lock()
	for _, s := range h.accepted {
		s.close()
	}
	h.mu.Unlock()
	h.running.Wait()
}

type muxLink struct {
	h *muxHost
	s muxSession

	serving sync.Once // of streams that the accepting side opens
}

func (l *muxLink) close() { l.s.close() }

func (l *muxLink) newCaller(request []byte, _ bool) (op, error) { return l.h.newCaller(l.s, request) }

func (l *muxLink) ask(request []byte) (first time.Duration, err error) {
	begin := time.Now()
	c, err := l.s.open()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(append(l.h.preamble(answer, nil), request...)); err != nil {
		return 0, err
	}
	return firstByte(c, begin, len(request))
}

func (l *muxLink) newBackCaller(request []byte) (op, error) {
	l.serving.Do(func() { l.h.running.Go(func() { l.h.serve(l.s) }) })
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	if len(l.h.accepted) != 1 {
		return nil, fmt.Errorf("there are %d sessions to call back on", len(l.h.accepted))
	}
	return l.h.newCaller(l.h.accepted[0], request)
}

func (h *muxHost) newCaller(s muxSession, request []byte) (op, error) {
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(h.preamble(echoStream, nil)); err != nil {
		return nil, err
	}
	frame, r := appendFrame(nil, request), bufio.NewReader(c)
	var buf []byte
	return func() error {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		var err error
		if buf, err = readFrame(r, buf); err != nil {
			return err
		}
		return echoed(buf[4:], request)
	}, nil
}

// preamble returns the first bytes of a stream. The reader of the stream sends its count to tally,
// unless that is nil.
func (h *muxHost) preamble(kind streamKind, tally chan int64) []byte {
	n := h.streams.Add(1)
	if tally != nil {
		h.tallies.Store(n, tally)
	}
	return binary.BigEndian.AppendUint64([]byte{byte(kind)}, n)
}

func (l *muxLink) open(kind streamKind) (sender, error) {
	c, err := l.s.open()
	if err != nil {
		return nil, err
	}
	s := &muxSender{c: c, framed: kind == messages || kind == large, tally: make(chan int64, 1)}
	_, err = c.Write(l.h.preamble(kind, s.tally))
	return s, err
}

type muxSender struct {
	c      io.ReadWriteCloser
	framed bool
	buf    []byte
	tally  chan int64
}

func (s *muxSender) send(b []byte) error {
	if s.framed {
		s.buf = appendFrame(s.buf[:0], b)
		b = s.buf
	}
	_, err := s.c.Write(b)
	return err
}

func (s *muxSender) finish() (int64, error) {
	if err := s.c.Close(); err != nil {
		return 0, err
	}
	return <-s.tally, nil
}

// tcpMux is a muxTransport over TCP.
type tcpMux struct {
	ln             net.Listener
	path           *path
	addr           string // where to dial
	server, client func(net.Conn) (muxSession, error)
}

// overTCP returns a function that listens for a multiplexer over TCP; server and client make the
// ends of a session.
func overTCP(server, client func(net.Conn) (muxSession, error)) func(*path) (muxTransport, error) {
	return func(p *path) (muxTransport, error) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		addr, err := p.tcp(ln.Addr().String())
		if err != nil {
			ln.Close()
			return nil, err
		}
		return &tcpMux{ln, p, addr, server, client}, nil
	}
}

func (t *tcpMux) accept() (muxSession, error) {
	c, err := t.ln.Accept()
	if err != nil {
		return nil, err
	}
	return t.server(c)
}

func (t *tcpMux) dial() (muxSession, error) {
	c, err := t.path.dial(context.Background(), t.addr)
	if err != nil {
		return nil, err
	}
	return t.client(c)
}

func (t *tcpMux) close() { t.ln.Close() }
