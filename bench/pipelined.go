package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
)

// pipelinedFloor returns the minimum for calls of many callers over one connection: frames of a
// length (4 bytes), a type (1), a caller (4) and a payload. Frames that queue while a caller writes
// are sent together, with the next write; the other side answers all frames that it has read with
// one write.
func pipelinedFloor() *impl {
	return &impl{
		name: "floor-pipelined", link: (*pipelinedLink)(nil), kinds: []streamKind{messages}, paths: true, without: []string{"sessions-64B", "connect", "idle-sessions"},
		listen: func(_ context.Context, n needs) (host, error) {
			return listenTCP(n.path, servePipelined, newPipelinedLink)
		},
	}
}

const (
	frameHead = 4 + 5
	frameRead = 64 << 10 // size of a read

	frameCall    = 1
	frameMessage = 2
	frameEnd     = 3 // of messages: to be answered with the number of their bytes
)

func appendPipelined(dst []byte, kind byte, from uint32, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(5+len(payload)))
	dst = binary.BigEndian.AppendUint32(append(dst, kind), from)
	return append(dst, payload...)
}

// eachPipelined passes received frames to f, which are valid until f returns, and calls batch
// whenever there is no complete frame left.
func eachPipelined(c net.Conn, f func(kind byte, from uint32, payload []byte), batch func() error) {
	buf := make([]byte, frameRead)
	for begin, end := 0, 0; ; {
		rest := buf[begin:end]
		if len(rest) >= 4 {
			n := 4 + int(binary.BigEndian.Uint32(rest))
			if len(rest) >= n {
				f(rest[4], binary.BigEndian.Uint32(rest[5:]), rest[frameHead:n])
				begin += n
				continue
			}
			if n > len(buf) {
				buf = make([]byte, n+frameRead)
			}
		}
		if batch() != nil {
			return
		}
		begin, end = 0, copy(buf, rest)
		n, err := c.Read(buf[end:])
		if err != nil {
			return
		}
		end += n
	}
}

// servePipelined is the accepting side.
func servePipelined(c net.Conn) {
	var out []byte
	var received uint64
	eachPipelined(c, func(kind byte, from uint32, payload []byte) {
		switch kind {
		case frameCall:
			out = appendPipelined(out, frameCall, from, payload)
		case frameMessage:
			received += uint64(len(payload))
		case frameEnd:
			out = appendPipelined(out, frameEnd, from, binary.BigEndian.AppendUint64(nil, received))
		}
	}, func() error {
		if len(out) == 0 {
			return nil
		}
		_, err := c.Write(out)
		out = out[:0]
		return err
	})
}

type pipelinedLink struct {
	c    net.Conn
	done chan struct{} // closed when read has returned

	mu      sync.Mutex
	out     []byte // guarded by mu, as all below; bytes to write
	spare   []byte
	writing bool
	callers []*pipelinedCaller
}

type pipelinedCaller struct {
	reply []byte
	done  chan struct{} // holds a token when reply has arrived
}

var errLinkClosed = errors.New("the connection is closed")

func newPipelinedLink(c net.Conn) link {
	l := &pipelinedLink{c: c, done: make(chan struct{})}
	go l.read() // ends with the connection
	return l
}

func (l *pipelinedLink) close() {
	l.c.Close()
	<-l.done
}

// read delivers each answer to its waiting caller.
func (l *pipelinedLink) read() {
	defer close(l.done)
	eachPipelined(l.c, func(_ byte, from uint32, payload []byte) {
		l.mu.Lock()
		c := l.callers[from]
		l.mu.Unlock()
		c.reply = append(c.reply[:0], payload...)
		c.done <- struct{}{}
	}, func() error { return nil })
}

// add returns a new caller and its number.
func (l *pipelinedLink) add() (*pipelinedCaller, uint32) {
	c := &pipelinedCaller{done: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers = append(l.callers, c)
	return c, uint32(len(l.callers) - 1)
}

func (l *pipelinedLink) newCaller(request []byte, _ bool) (op, error) {
	c, id := l.add()
	return func() error {
		if err := l.write(id, request); err != nil {
			return err
		}
		if err := l.wait(c); err != nil {
			return err
		}
		return echoed(c.reply, request)
	}, nil
}

// write puts a frame into the next write. If no write is in progress, it writes all queued frames
// itself.
func (l *pipelinedLink) write(id uint32, payload []byte) error {
	l.mu.Lock()
	l.out = appendPipelined(l.out, frameCall, id, payload)
	if l.writing {
		l.mu.Unlock()
		return nil
	}
	l.writing = true
	l.mu.Unlock()
	runtime.Gosched() // other goroutines that are about to call add their frames
	for {
		l.mu.Lock()
		batch := l.out
		if len(batch) == 0 {
			l.writing = false
			l.mu.Unlock()
			return nil
		}
		l.out = l.spare[:0]
		l.mu.Unlock()
		_, err := l.c.Write(batch)
		l.mu.Lock()
		l.spare = batch
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (l *pipelinedLink) wait(c *pipelinedCaller) error {
	select {
	case <-c.done:
		return nil
	case <-l.done:
		return errLinkClosed
	}
}

func (l *pipelinedLink) open(streamKind) (sender, error) {
	return &pipelinedSender{l: l, w: bufio.NewWriterSize(l.c, frameRead)}, nil
}

// pipelinedSender is the only user of the connection.
type pipelinedSender struct {
	l   *pipelinedLink
	w   *bufio.Writer
	buf []byte
}

func (s *pipelinedSender) send(b []byte) error {
	s.buf = appendPipelined(s.buf[:0], frameMessage, 0, b)
	_, err := s.w.Write(s.buf)
	return err
}

func (s *pipelinedSender) finish() (int64, error) {
	c, id := s.l.add()
	s.buf = appendPipelined(s.buf[:0], frameEnd, id, nil)
	if _, err := s.w.Write(s.buf); err != nil {
		return 0, err
	}
	if err := s.w.Flush(); err != nil {
		return 0, err
	}
	if err := s.l.wait(c); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(c.reply)), nil
}
