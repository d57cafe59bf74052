//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package transport

import "syscall"

// sharePort says that there is no such thing here. What Windows calls SO_REUSEADDR would let
// anybody take connections away.
func sharePort(syscall.RawConn) error { return errNoSharing }
