// Package wait has what goroutines wait with: notices of a change, and times that the end of a
// context cuts short.
package wait

import (
	"context"
	"time"
)

// HoldOff waits, and reports false if ctx ends before.
func HoldOff(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
