package main

import (
	"context"
	"time"
)

// trouble is a fault, and its repair.
type trouble struct {
	begins, ends string
	begin, mend  func(ctx context.Context) error
	lasts        time.Duration
	meanwhile    []trouble // within that time, one after the other
}

// pause returns the time without other faults before, between and after those that occur meanwhile.
func (t *trouble) pause() time.Duration {
	left := t.lasts
	for _, m := range t.meanwhile {
		left -= m.lasts
	}
	return max(0, left) / time.Duration(len(t.meanwhile)+1)
}
