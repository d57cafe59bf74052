package stdiowire

import (
	"os"
	"syscall"
)

// replace makes fd refer to the file of by.
func replace(by, fd int) error { return os.NewSyscallError("dup3", syscall.Dup3(by, fd, 0)) }
