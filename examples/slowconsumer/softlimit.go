package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// inBytes returns limits without a bound on messages.
func inBytes(soft, hard int) limits.Limits {
	return limits.Limits{Soft: limits.Amount{Bytes: soft}, Hard: limits.Amount{Bytes: hard}}
}

// noWindows returns the options of a consumer without windows, to show the effect of the soft
// limit.
func noWindows() []asterisque.Option {
	return []asterisque.Option{
		asterisque.WithLimits(asterisque.Limits{Inbound: inBytes(inboundSoft, 4*inboundSoft), Window: -1}),
	}
}

const inboundSoft = 4 << 20

// streams is how many senders bring a session to its outbound soft limit: a single one blocks at 64
// KiB in the queue.
const streams = 32

// showSoftLimit pauses the consumer for a while. Its session stops reading at the soft limit, the
// connection fills up, and the sender's Send blocks, until the consumer takes some.
func showSoftLimit(ctx context.Context, t *table, log *slog.Logger) error {
	wakeUp := make(chan struct{})
	tick := time.NewTicker(t.beat / 100) // about 100 Blocks a line
	defer tick.Stop()
	sleeper := func(ctx context.Context, s *stage, p *pipe.Pipe) error {
		select {
		case <-wakeUp:
		case <-ctx.Done():
			return ctx.Err()
		}
		return s.takeSlowly(ctx, p, tick.C)
	}
	s, err := newStage(ctx, t, log, sleeper, []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Outbound: inBytes(1<<20, 4<<20)})}, noWindows())
	if err != nil {
		return err
	}
	defer s.close()
	t.title(`2. THE SOFT LIMIT. There are no windows now, but %d streams, and their consumer sleeps. What it has not taken is bounded at
4 MiB, what the sender has not given to the connection at 1 MiB.`, streams)
	t.head()
	if err := s.flood(streams); err != nil {
		return err
	}
	s.callAlong(s.near)
	err = s.watch(1, "the soft limit on both sides", func() bool {
		return s.near.Stats().OutboundState == limits.Soft && s.far.Stats().InboundState == limits.Soft
	})
	if err == nil {
		err = s.watch(2, "", nothing)
	}
	if err != nil {
		return err
	}
	sent := s.sent.Load()
	t.say(`The session has stopped reading. What was sent and is not held is in the connection, which takes no more. Send waits, and,
without windows, so do the calls. The consumer wakes up:`)
	close(wakeUp)
	if err := s.watch(4, "Send going on", func() bool { return s.sent.Load() > sent }); err != nil {
		return err
	}
	if err := errors.Join(s.near.Err(), s.far.Err()); err != nil {
		return fmt.Errorf("the session ended at its soft limit: %w", err)
	}
	if s.mostHeld > inboundSoft+2*block {
		return fmt.Errorf("the consumer held %d bytes, in spite of a limit of %d", s.mostHeld, inboundSoft)
	}
	t.say("Reading continues at 2 MiB, half of the limit, and stops again at 4. The consumer never held more than %s.", amount(int64(s.mostHeld)))
	return nil
}
