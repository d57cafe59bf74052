package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	// longPatience is how long a durable call may take, with all its repetitions. A replica that
	// was killed is waited for less than that: see Lease.
	longPatience = 8 * time.Second

	tryTime   = 2 * time.Second        // for one attempt
	againSoon = 100 * time.Millisecond // after the first one, and after twice as long each time
	againMost = time.Second
)

// durably makes a call that runs once, however often it is made: with the same key each time, at
// whichever replica takes it, until it is answered or ctx ends. The error says that the call may
// have run if one of the attempts may have.
func (l *ledger) durably(ctx context.Context, call number, try func(ctx context.Context, key asterisque.CallOption) error) error {
	key := asterisque.WithIdempotencyKey(newKey())
	var open error // of the last attempt that may have run
	for pause := againSoon; ; pause = min(2*pause, againMost) {
		err := attempt(ctx, key, try)
		if err == nil {
			return nil
		}
		if !asterisque.Repeatable(err) {
			if open == nil {
				l.note(call, madeAgain)
			}
			open = err
		}
		switch over := rest(ctx, pause) != nil; {
		case over && open != nil:
			return open
		case over:
			return err
		}
	}
}

func attempt(ctx context.Context, key asterisque.CallOption, try func(ctx context.Context, key asterisque.CallOption) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	return try(ctx, key)
}

// newKey returns a key that nobody can guess: whoever has proved nothing needs 16 such bytes.
func newKey() []byte {
	key := make([]byte, 16)
	rand.Read(key) // never fails
	return key
}
