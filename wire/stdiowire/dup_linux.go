package stdiowire

import (
	"os"
	"syscall"
)

// replace makes fd stand for what is behind by.
func replace(by, fd int) error { return os.NewSyscallError("dup3", syscall.Dup3(by, fd, 0)) }
