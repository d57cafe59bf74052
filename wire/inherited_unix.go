//go:build unix

package wire

import (
	"fmt"
	"os"
	"syscall"
)

// duplicate returns a duplicate of an inherited descriptor. Child processes do not inherit the
// duplicate.
func duplicate(fd int, name string) (*os.File, error) {
	syscall.ForkLock.RLock() // so that no process started meanwhile keeps the socket open
	own, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(own)
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("it is not open: %w", os.NewSyscallError("dup", err))
	}
	if name == "" {
		name = fmt.Sprintf("descriptor %d", fd)
	}
	return os.NewFile(uintptr(own), name), nil
}
