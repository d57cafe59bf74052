package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	// longPatience is the time limit of a durable call, with all its retries. The wait for a
	// replica that was killed is shorter: see Lease.
	longPatience = 12 * time.Second

	tryTime   = 2 * time.Second        // for one attempt
	againSoon = 100 * time.Millisecond // after the first one, doubled each time
	againMost = time.Second

	mostTold = 3 // maximum number of replicas' reports that a call may or may not have run
)

// durably makes a call that runs once, however often it is made: with the same key each time, at
// any replica, until it is answered, or ctx ends, or the replicas report that the one that ran it
// was lost. The error reports that the call may have run if one of the attempts may have.
func (l *ledger) durably(ctx context.Context, call number, try func(ctx context.Context, key asterisque.CallOption) error) error {
	key := asterisque.WithIdempotencyKey(newKey())
	so := attempts{}
	for pause := againSoon; ; pause = min(2*pause, againMost) {
		err := attempt(ctx, key, try)
		if err == nil {
			return nil
		}
		if so.take(err) {
			l.note(call, madeAgain)
		}
		if so.told == mostTold || rest(ctx, pause) != nil {
			return so.outcome(err)
		}
	}
}

// attempts is the state of a durable call so far.
type attempts struct {
	open error // of the last attempt that may have run
	told int   // number of replies that the replica that ran it was lost
}

// take records the error of an attempt, and reports whether it is the first that may have run.
func (a *attempts) take(err error) (first bool) {
	if wasLost(err) {
		a.told++
	}
	if asterisque.Repeatable(err) {
		return false
	}
	first = a.open == nil
	a.open = err
	return first
}

// outcome returns the error of the call, with the error of its last attempt.
func (a *attempts) outcome(last error) error {
	if a.open != nil {
		return a.open
	}
	return last
}

func attempt(ctx context.Context, key asterisque.CallOption, try func(ctx context.Context, key asterisque.CallOption) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return try(ctx, key)
}

// newKey returns an unguessable key: an unauthenticated caller needs 16 such bytes.
func newKey() []byte {
	key := make([]byte, 16)
	rand.Read(key) // never fails
	return key
}
