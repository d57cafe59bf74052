package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// ListenFile makes a Listener of a listening socket that another process has handed over: as one of
// the ExtraFiles of an [os/exec.Cmd], for which the new process calls [os.NewFile](3, "socket"), or
// in a message on a Unix socket. See [Inherited] for the sockets of systemd. The options are as for
// [ListenOn].
//
// The Listener has a duplicate of f. The caller keeps f, and closes it when it is no longer needed.
// Sockets that are duplicates of each other, in whichever process, have one queue: each connection
// is accepted by one of them, and none is lost as long as one is open. Peers wait while no process
// accepts. Close leaves the path of a Unix socket, because another process may listen there.
//
// The error gives the reason: f is nil, closed, not a socket, a connection or a socket for packets
// such as UDP; or the platform does not support it ([errors.ErrUnsupported]), as on Windows.
func ListenFile(f *os.File, o Options) (Listener, error) {
	if f == nil {
		return nil, errors.New("wire: listen on a nil file: os.NewFile returns nil for a descriptor that is negative")
	}
	l, err := listenFile(f, o)
	if err != nil {
		return nil, fmt.Errorf("wire: listen on the file %q: %w", f.Name(), err)
	}
	return l, nil
}

func listenFile(f *os.File, o Options) (Listener, error) {
	if err := checkSocket(f); err != nil {
		return nil, err
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	l, err := listenOn(ln, o)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return l, nil
}

// ListenerFile returns the socket of a Listener, to hand it over to another process, which calls
// [ListenFile] or [Inherited]. The file is a duplicate. The caller closes it when the other process
// has started; until then, it may queue connections that no process accepts. After ListenerFile,
// Close of the Listener leaves the path of a Unix socket.
//
// ListenerFile supports the listeners of this package for TCP, TLS and Unix sockets, those of
// [ListenOn] if the net.Listener has the method File of [net.TCPListener], and any other Listener
// with such a method, such as that of smux. For the rest, and for all on Windows, it fails with
// [errors.ErrUnsupported]. After Close the error wraps [net.ErrClosed].
func ListenerFile(l Listener) (*os.File, error) {
	if l == nil {
		return nil, errors.New("wire: the file of a nil Listener: look at the error that was returned with it")
	}
	f, err := listenerFile(l)
	if err != nil {
		return nil, fmt.Errorf("wire: the file of the listener at %s: %w", l.URL(), err)
	}
	return f, nil
}

func listenerFile(l Listener) (*os.File, error) {
	if s, ok := l.(fileListener); ok {
		return s.File()
	}
	return nil, errNoSocket
}
