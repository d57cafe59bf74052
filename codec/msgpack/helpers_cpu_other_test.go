//go:build !unix

package msgpack_test

import (
	"testing"
	"time"
)

// cpuTime returns the CPU time of this process, which this platform does not report.
func cpuTime(t testing.TB) time.Duration {
	t.Skip("the time of processors is measured on Unix systems only")
	return 0
}
