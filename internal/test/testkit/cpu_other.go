//go:build !unix

package testkit

import (
	"testing"
	"time"
)

// CPUTime skips the test, because the CPU time of this program is unknown on this system.
func CPUTime(t testing.TB) time.Duration {
	t.Skip("the time of processors is measured on Unix systems only")
	return 0
}
