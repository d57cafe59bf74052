package exchange

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

// room counts what there may be a number of.
type room struct {
	most int64 // fixed
	used atomic.Int64
}

// enter takes a place, unless all are taken.
func (r *room) enter() bool {
	if r.used.Add(1) <= r.most {
		return true
	}
	r.used.Add(-1)
	return false
}

func (r *room) leave() { r.used.Add(-1) }

// full is the error of who finds no place. Nothing has run, so it is safe to try again.
func full(format string, args ...any) error {
	a := asterisque.ErrOverloaded.Withf(format, args...)
	a.Ran = codec.Refused
	return a
}
