package kv

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// Timeout is the timeout for one answer of NATS at the start of a node, and for the reads of many
// entries.
const Timeout = 5 * time.Second

// RequestTimeout is the timeout of each request to NATS. A request that is lost with a server is
// never answered, so a retry is better than a long wait.
const RequestTimeout = 2 * time.Second

// Retry retries open for a node that joins, until start ends, while the NATS servers have yet to
// find each other or to elect a leader. A random delay spreads the requests of many nodes that join
// at once.
func Retry(start context.Context, open func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(start, Timeout)
		err := open(ctx)
		cancel()
		if err == nil || !mayAppear(err) || !wait.HoldOff(start, rand.N(time.Second)) {
			return err
		}
	}
}

// IsTemporary reports whether err is temporary, so that a later attempt may succeed.
func IsTemporary(err error) bool {
	var api *jetstream.APIError
	return !errors.Is(err, ErrNoJetStream) && (errors.Is(err, context.DeadlineExceeded) || errors.As(err, &api) && api.Code == 503)
}

// mayAppear reports whether a bucket or stream that could not be opened may exist later:
// IsTemporary(err), or another node has created it just now, and not all servers know of it.
func mayAppear(err error) bool {
	return IsTemporary(err) || errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// Backoff returns the delay before the next attempt after times attempts: 20 ms at first, a
// second at most.
func Backoff(times int) time.Duration {
	return min(20*time.Millisecond<<min(times, 10), time.Second)
}
