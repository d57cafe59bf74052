//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package transport

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// sharePort says that there is no such thing here. What Windows calls SO_REUSEADDR would let
// anybody take connections away.
func sharePort(syscall.RawConn) error {
	return fmt.Errorf("%w: Options.ReusePort: %s has no sockets that share a port; listen without it", errors.ErrUnsupported, runtime.GOOS)
}
