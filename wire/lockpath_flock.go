//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// canLock reports whether lockPath locks.
const canLock = true

const (
	lockSuffix = ".asterisque-lock"
	lockEach   = 5 * time.Millisecond // between two attempts
	lockTime   = 10 * time.Second     // a running program holds the lock only briefly
)

// lockPath keeps other programs from listening at a path until unlock is called. The lock is a file
// beside the path: any program that may read the folder could hold a lock of the folder.
func lockPath(ctx context.Context, path string) (unlock func(), err error) {
	if abstract(path) {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockTime, fmt.Errorf("another program has held it for %v", lockTime))
	defer cancel()
	name := path + lockSuffix
	for {
		f, err := lockFile(ctx, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the lock %s, which is there while the socket is made: %w", name, err)
		case f != nil:
			return func() {
				os.Remove(name)
				f.Close()
			}, nil
		}
	}
}

// lockFile returns the locked file of a name. It returns nil if the program that had the lock has
// removed the file.
func lockFile(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return nil, failed.Err // the name is in the error already
	}
	if err = awaitLock(ctx, f); err == nil {
		var mine, named os.FileInfo
		if mine, err = f.Stat(); err == nil {
			if named, err = os.Lstat(name); err == nil && os.SameFile(mine, named) {
				return f, nil
			}
		}
	}
	f.Close()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, err
}

func awaitLock(ctx context.Context, f *os.File) error {
	again := time.NewTicker(lockEach)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			return os.NewSyscallError("flock", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
