// Package stream transfers bytes over a pipe, with an [io.Writer] at one end and an [io.Reader] at
// the other.
//
// A [Writer] cuts the written bytes into Blocks of a moderate size, so that a bulk write never
// delays the other pipes of a session for long. A [Reader] joins the Blocks again. Both block as
// the pipe does: for its window, for the limits of the session, for the peer. Errors of the pipe
// are returned unchanged, so that [errors.Is] finds their codes, such as that of ErrStopped of
// package codec.
//
//	w, r := stream.NewWriter(p), stream.NewReader(p)
package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// streamDeadline is a point in time that bounds each call that begins after it was set.
type streamDeadline struct {
	at time.Time
}

// context returns a context that ends at the deadline.
func (d streamDeadline) context() (context.Context, context.CancelFunc) {
	if d.at.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), d.at)
}

// explain returns an error of the pipe as the caller sees it: the end of ctx is an exceeded
// deadline.
func explain(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stream: %s: %w", op, os.ErrDeadlineExceeded)
	}
	return err
}
