//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package transport

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// sharePort fails: this system has no equivalent. SO_REUSEADDR of Windows would permit any program
// to take over connections.
func sharePort(syscall.RawConn) error {
	return fmt.Errorf("%w: Options.ReusePort: %s has no sockets that share a port; listen without it", errors.ErrUnsupported, runtime.GOOS)
}
