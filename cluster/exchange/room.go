package exchange

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// semaphore is a counting semaphore.
type semaphore struct {
	most int64 // fixed
	used atomic.Int64
}

// enter acquires a slot, unless all are taken.
func (r *semaphore) enter() bool {
	if r.used.Add(1) <= r.most {
		return true
	}
	r.used.Add(-1)
	return false
}

func (r *semaphore) leave() { r.used.Add(-1) }

// full returns the error for a missing slot. Nothing has run, so a retry is safe.
func full(format string, args ...any) error {
	a := asterisque.ErrOverloaded.Withf(format, args...)
	a.Ran = codec.Refused
	return a
}
