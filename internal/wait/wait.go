// Package wait provides waits for goroutines: notices of a change, and timers that the end of a
// context ends early.
package wait

import (
	"context"
	"time"
)

// HoldOff waits for d. It returns false if ctx ends before.
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

// Sleep is HoldOff, and returns false at once if ctx would end before d is over.
func Sleep(ctx context.Context, d time.Duration) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	return HoldOff(ctx, d)
}
