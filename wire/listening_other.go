//go:build !unix

package wire

import "syscall"

// checkSocket leaves it to package net to find out.
func checkSocket(syscall.Conn) error { return nil }
