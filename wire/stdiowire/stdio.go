package stdiowire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/asterisque-go/asterisque/wire"
)

// Stdio returns the Wire to the parent, over this program's standard input and output. The Wire
// owns both. After the call, prints to standard output go to standard error, and standard input is
// empty. Call it once, before any output. The error says that standard input or output is not a
// pipe: the program was started by hand, or by a parent that does not use this protocol, or Stdio
// was called before.
//
// The Wire ends, with io.EOF, when the parent closes it, or dies. The program should end then; the
// parent waits for a grace period.
//
// When the parent has died, standard output and standard error have no reader. A Go program that
// writes to them is killed by SIGPIPE (see [os/signal]), even by a log line before it cleans up.
// Stdio catches that signal, as [signal.Notify] does, for as long as the program runs, so that such
// a write only returns an error (EPIPE). [signal.Reset] would undo that. Programs that this one
// starts are still killed by the signal.
func Stdio() (wire.Wire, error) {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		if info, err := f.Stat(); err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			return nil, fmt.Errorf("stdiowire: %s is not a pipe: this program has to be started by another, for example with stdiowire.Start", f.Name())
		}
	}
	signal.Notify(make(chan os.Signal, 1), sigPipe) // Notify does not wait for a receiver
	in, out, err := take()
	if err != nil {
		return nil, fmt.Errorf("stdiowire: %w", err)
	}
	return wire.FromConn(parentProcess{in, out}), nil
}

// sigPipe is SIGPIPE, which package syscall names on Unix systems only.
const sigPipe = syscall.Signal(13)

// parentProcess is the parent process as an io.ReadWriteCloser.
type parentProcess struct{ in, out *os.File }

// Read implements io.Reader.
func (p parentProcess) Read(b []byte) (int, error) { return p.in.Read(b) }

// Write implements io.Writer.
func (p parentProcess) Write(b []byte) (int, error) { return p.out.Write(b) }

// Close implements io.Closer.
func (p parentProcess) Close() error { return errors.Join(p.out.Close(), p.in.Close()) }

// LocalAddr names this process.
func (p parentProcess) LocalAddr() net.Addr { return self() }

// RemoteAddr names the parent.
func (p parentProcess) RemoteAddr() net.Addr { return addr(fmt.Sprintf("pid %d", os.Getppid())) }
