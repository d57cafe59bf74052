//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package stdiowire

import (
	"os"
	"syscall"
)

// take returns standard input and output, and replaces them by harmless files.
func take() (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	if in, err = move(syscall.Stdin, int(null.Fd()), "standard input"); err != nil {
		return nil, nil, err
	}
	if out, err = move(syscall.Stdout, syscall.Stderr, "standard output"); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// move returns the file of fd under a new descriptor, and makes fd refer to the file of other.
func move(fd, other int, name string) (*os.File, error) {
	syscall.ForkLock.RLock() // so that no process started meanwhile keeps the pipe open
	own, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(own)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if err := replace(other, fd); err != nil {
		syscall.Close(own)
		return nil, err
	}
	if err := syscall.SetNonblock(own, true); err != nil {
		// so that Close wakes the reader and the writer
		syscall.Close(own)
		return nil, os.NewSyscallError("setnonblock", err)
	}
	return os.NewFile(uintptr(own), name), nil
}
