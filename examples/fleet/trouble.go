package main

import (
	"context"
	"time"
)

// trouble is something that goes wrong, and what mends it.
type trouble struct {
	begins, ends string
	begin, mend  func(ctx context.Context) error
	lasts        time.Duration
}
