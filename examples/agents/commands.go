package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/asterisque-go/asterisque"
)

// The commands of agents, by their names. Each sends its output line by line.
var commands = map[string]func(ctx context.Context, c command, send func(string) error) error{
	"env":   env,
	"count": count,
	"watch": watch,
}

const (
	lineEach  = 10 * time.Millisecond  // of count
	pulseEach = 100 * time.Millisecond // of watch, and of news
	mostLines = 100_000
)

// env sends facts about the agent's machine, and ends at once.
func env(_ context.Context, _ command, send func(string) error) error {
	for _, line := range []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH, fmt.Sprint("CPUS=", runtime.NumCPU())} {
		if err := send(line); err != nil {
			return err
		}
	}
	return nil
}

// count runs for a while. It continues while the session drains, since it ends by itself.
func count(ctx context.Context, c command, send func(string) error) error {
	if c.Lines < 0 || c.Lines > mostLines {
		return asterisque.ErrBadParams.Withf("%d lines are outside 0..%d", c.Lines, mostLines)
	}
	for i := range c.Lines {
		if err := rest(ctx, lineEach); err != nil {
			return err
		}
		if err := send(fmt.Sprintf("line %d of %d", i+1, c.Lines)); err != nil {
			return err
		}
	}
	return nil
}

// watch would run forever. So it ends when the session drains, and the caller can call again,
// through another server.
func watch(ctx context.Context, _ command, send func(string) error) error {
	return pulse(ctx, func(n int) error { return send(fmt.Sprint("pulse ", n)) })
}

// pulse calls beat repeatedly, until the session of its handler drains.
func pulse(ctx context.Context, beat func(n int) error) error {
	tick := time.NewTicker(pulseEach)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
			if err := beat(n); err != nil {
				return err
			}
		case <-asterisque.Draining(ctx):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
