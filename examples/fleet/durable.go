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

	tryTime   = 2 * time.Second // for one attempt
	againSoon = 200 * time.Millisecond
)

// durably makes a call that runs once, however often it is made: with the same key each time, at
// whichever replica takes it, until it is answered or ctx ends. The error says that the call may
// have run if one of the attempts may have.
func (l *ledger) durably(ctx context.Context, call number, try func(ctx context.Context, key asterisque.CallOption) error) error {
	key := asterisque.WithIdempotencyKey(newKey())
	var open error // of the last attempt that may have run
	for {
		err := attempt(ctx, key, try)
		if err == nil {
			return nil
		}
		if !asterisque.Repeatable(err) {
			open = err
		}
		switch over := rest(ctx, againSoon) != nil; {
		case over && open != nil:
			return open
		case over:
			return err
		case open != nil:
			l.note(call, madeAgain)
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
