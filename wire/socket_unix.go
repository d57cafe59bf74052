//go:build unix

package wire

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/asterisque-go/asterisque/internal/native"
)

// socketWire is the Wire over a socket of the operating system. It waits for bytes without a
// buffer, and can write without blocking.
type socketWire struct {
	native.Mark
	connWire
	raw syscall.RawConn // fixed

	// These carry arguments and results of tryWrite. They belong to the writer.
	try   func(fd uintptr) (done bool) // tryWrite; made once, because making it allocates
	batch []byte
	taken int
	err   error
}

// newSocketWire returns a socketWire if c is a socket. Types that merely embed one are not: their
// own Read and Write would be bypassed.
func newSocketWire(s *streamWire, c net.Conn) (Wire, bool) {
	var raw syscall.RawConn
	var err error
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return nil, false
	}
	if err != nil {
		return nil, false
	}
	w := &socketWire{connWire: connWire{s, c}, raw: raw}
	w.try = w.tryWrite
	w.in.src = newSocketSource(raw, w.streamWire)
	return w, true
}

// TryWriteBatch implements TryWriter.
func (w *socketWire) TryWriteBatch(batch []byte) (int, error) {
	if err := w.out.writable(); err != nil {
		return 0, err
	}
	w.batch, w.taken, w.err = batch, 0, nil
	err := w.raw.Write(w.try)
	w.batch = nil
	w.out.count(int64(w.taken))
	if err == nil {
		err = w.err
	}
	if err != nil {
		return w.taken, w.out.failed(err)
	}
	return w.taken, nil
}

// WriteVector implements VectorWriter.
func (w *socketWire) WriteVector(pieces [][]byte) error { return w.out.vector(pieces) }

// tryWrite writes as much of the batch as the kernel accepts. It always reports that it is done, so
// that the runtime does not wait for the socket.
func (w *socketWire) tryWrite(fd uintptr) (done bool) {
	for w.taken < len(w.batch) {
		rest := w.batch[w.taken:]
		n, err := syscall.Write(int(fd), rest[:portion(len(rest))])
		switch {
		case n > 0:
			w.taken += n
		case err == syscall.EAGAIN:
			return true
		case err != syscall.EINTR:
			w.err = opError(w.streamWire, "write", err)
			return true
		}
	}
	return true
}

// socketSource reads a socket.
type socketSource struct {
	raw  syscall.RawConn // fixed
	wire *streamWire

	// These carry arguments and results of tryRead and belong to the reading goroutine.
	try  func(fd uintptr) (done bool) // tryRead; made once, because making it allocates
	need int
	err  error
}

func newSocketSource(raw syscall.RawConn, w *streamWire) *socketSource {
	s := &socketSource{raw: raw, wire: w}
	s.try = s.tryRead
	return s
}

func (s *socketSource) fill(_ *frameReader, need int) error {
	s.need, s.err = need, nil
	if err := s.raw.Read(s.try); err != nil {
		return err
	}
	return s.err
}

// tryRead reads available bytes. While there are none, it holds no buffer, and the runtime waits
// for the socket.
func (s *socketSource) tryRead(fd uintptr) (done bool) {
	r := &s.wire.in
	size := chunk
	if r.empty() {
		size = r.likely()
	}
	room := r.bound(r.room(s.need, size), s.need)
	n, err := syscall.Read(int(fd), room)
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), room)
	}
	switch {
	case n > 0:
		r.end += n
	case err == syscall.EAGAIN:
		r.shrink() // the wait may be long
		r.note()
		return false
	case err != nil:
		s.err = opError(s.wire, "read", err)
	default:
		s.err = io.EOF
	}
	return true
}

// opError makes the error that the net package would return for a failed system call.
func opError(s *streamWire, op string, err error) error {
	return &net.OpError{Op: op, Net: s.local.Network(), Source: s.local, Addr: s.remote, Err: os.NewSyscallError(op, err)}
}
