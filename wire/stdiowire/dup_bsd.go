//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package stdiowire

import (
	"os"
	"syscall"
)

// replace makes fd refer to the file of by.
func replace(by, fd int) error { return os.NewSyscallError("dup2", syscall.Dup2(by, fd)) }
