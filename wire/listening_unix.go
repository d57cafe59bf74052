//go:build unix

package wire

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// checkSocket returns an error if c is not a socket that accepts streams.
func checkSocket(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var bad error
	if err := raw.Control(func(fd uintptr) { bad = checkDescriptor(int(fd)) }); err != nil {
		if !errors.Is(err, net.ErrClosed) {
			err = os.ErrClosed // package os does not export its own
		}
		return fmt.Errorf("it is closed: %w", err)
	}
	return bad
}

func checkDescriptor(fd int) error {
	kind, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE)
	switch {
	case errors.Is(err, syscall.ENOTSOCK):
		return fmt.Errorf("it is no socket: %w", os.NewSyscallError("getsockopt", err))
	case err != nil:
		return os.NewSyscallError("getsockopt", err)
	case kind != syscall.SOCK_STREAM:
		return errors.New("it is a socket for packets, such as UDP; a Wire needs one for streams: TCP, or Unix (ListenStream= of systemd)")
	}
	listens, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	switch {
	case err != nil:
		return os.NewSyscallError("getsockopt", err)
	case listens == 0:
		return errors.New("the socket does not listen; hand over one that does (Accept=no of systemd), or give a connection to FromConn")
	}
	return nil
}
