package stdiowire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// moment is how long to wait for the end of a child after its pipes have ended, and for the end of
// its pipes after it has ended.
const moment = time.Second

// childProcess is a running child process as an io.ReadWriteCloser, for wire.FromConn.
type childProcess struct {
	cmd   *exec.Cmd // these are fixed
	name  string
	grace time.Duration
	in    *os.File // the child's standard input
	out   *os.File // the child's standard output

	ended  chan struct{} // closed when the child has ended and been waited for
	status error         // of the child; set before ended is closed; nil for exit status 0
	last   string        // line of its standard error; as status
	gone   chan struct{} // closed when Close is done

	closed  atomic.Bool
	reading sync.Mutex // held during Read, and then by Close

	text outputHead // belongs to the goroutine that reads the Wire
}

// wait reads the child's standard error to its end, and waits for the child.
func (c *childProcess) wait(from *os.File, to io.Writer) {
	lines := make(chan string, 1)
	go func() { lines <- copyLines(to, from) }() // ends with from
	err := c.cmd.Wait()
	timer := time.AfterFunc(moment, func() { from.Close() }) // another process may have it open
	c.last = <-lines
	timer.Stop()
	from.Close()
	c.status = err
	close(c.ended)
	c.out.SetReadDeadline(time.Now()) // for the same reason; see Read
}

// Read implements io.Reader.
func (c *childProcess) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.out.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.closed.Load() {
		// the child has ended; its output is there, but perhaps not the end of the pipe
		c.out.SetReadDeadline(time.Now().Add(moment / 20))
		n, err = c.out.Read(p)
		c.out.SetReadDeadline(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = io.EOF
		}
	}
	c.text.add(p[:n])
	if err == io.EOF {
		if died := c.died(); died != nil {
			return n, died
		}
	}
	return n, err
}

// Write implements io.Writer.
func (c *childProcess) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		if died := c.died(); died != nil {
			return n, died
		}
		return n, fmt.Errorf("the child %s does not read its standard input any more: %w", c.name, err)
	}
	return n, err
}

// died waits a moment for the child to end, and returns the reason. It returns nil if the child
// continues, or has ended with exit status 0.
func (c *childProcess) died() error {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		return nil
	}
	switch {
	case c.status == nil:
		return nil
	case c.last != "":
		return fmt.Errorf("the child %s ended: %v; the last that it said was %q", c.name, c.status, c.last)
	}
	return fmt.Errorf("the child %s ended: %v", c.name, c.status)
}

// Close implements io.Closer. It returns when the child has ended, and is called once.
func (c *childProcess) Close() error {
	c.closed.Store(true)
	c.in.Close()
	if c.out.SetReadDeadline(time.Now()) != nil { // wakes Read
		c.out.Close()
	}
	drained := make(chan struct{})
	go func() { // ends with out
		defer close(drained)
		c.drain()
	}()
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.cmd.Process.Kill()
		<-c.ended
	}
	c.out.Close()
	<-drained
	close(c.gone)
	return nil
}

// drain reads the remaining output of the child, because a child that cannot write may not end.
func (c *childProcess) drain() {
	c.reading.Lock() // Read has returned, and none begins
	defer c.reading.Unlock()
	c.out.SetReadDeadline(time.Time{})
	io.Copy(io.Discard, c.out)
}

// LocalAddr names this process.
func (c *childProcess) LocalAddr() net.Addr { return self() }

// RemoteAddr names the child.
func (c *childProcess) RemoteAddr() net.Addr { return addr(c.name) }

// addr is a process.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return scheme }

// String implements net.Addr.
func (a addr) String() string { return string(a) }

func self() addr { return addr(fmt.Sprintf("pid %d", os.Getpid())) }

// streamWire is the result of wire.FromConn for an io.ReadWriteCloser.
type streamWire interface {
	wire.Wire
	wire.BatchWriter
	wire.Buffered
	wire.Meter
}

// childWire is the parent's Wire.
type childWire struct {
	streamWire
	child *childProcess
}

// Close implements wire.Wire. Every call, not only the first, returns when the child has ended.
func (w *childWire) Close() error {
	err := w.streamWire.Close()
	<-w.child.gone
	return err
}

// ReadFrame implements wire.Wire. If the child has printed text instead of frames, the error quotes
// it.
func (w *childWire) ReadFrame(max int) ([]byte, error) {
	frame, err := w.streamWire.ReadFrame(max)
	if err == nil || errors.Is(err, net.ErrClosed) {
		return frame, err
	}
	switch printed := w.child.text.String(); {
	case printed == "":
		return nil, err
	case errors.Is(err, wire.ErrFrameTooLarge):
		return nil, fmt.Errorf("%w: %s", err, printedError(printed))
	default: // truncated text is not a frame
		return nil, fmt.Errorf("%w (%v)", printedError(printed), err)
	}
}

func printedError(printed string) error {
	return fmt.Errorf("the child printed %q to its standard output, which belongs to the wire; it has to print to standard error", printed)
}
