package main

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// trouble is a fault, and its duration.
type trouble struct {
	name  string
	begin func(p *wiretest.Proxy)
	lasts int // percent of the time until the next one; 0: it does not end by itself
}

// A stall is first shorter than the peer's timeout, and later longer.
var troubles = []trouble{
	{"cut", (*wiretest.Proxy).Cut, 0},
	{"stands still for a moment", (*wiretest.Proxy).Stall, 10},
	{"swallows everything", (*wiretest.Proxy).HalfOpen, 0},
	{"cut, and refused for a while", func(p *wiretest.Proxy) { p.Refuse(); p.Cut() }, 50},
	{"stands still for long", (*wiretest.Proxy).Stall, 90},
	{"cut", (*wiretest.Proxy).Cut, 0},
	{"cut, and again", func(p *wiretest.Proxy) { p.Cut(); time.AfterFunc(5*time.Millisecond, p.Cut) }, 0},
}

// makeTrouble injects one fault after the other into p until the time is over. report is called
// before each of them, and at the end, with the previous fault. The error is that of ctx.
func makeTrouble(ctx context.Context, p *wiretest.Proxy, howLong time.Duration, report func(event string)) error {
	end := time.Now().Add(howLong)
	each := min(max(howLong/10, 750*time.Millisecond), 2*time.Second)
	event := "nothing yet"
	for i := 0; ; i++ {
		if err := rest(ctx, min(each, time.Until(end))); err != nil {
			return err
		}
		report(event)
		if time.Until(end) < each {
			return rest(ctx, time.Until(end))
		}
		now := troubles[i%len(troubles)]
		event = now.name
		now.begin(p)
		if now.lasts > 0 {
			// before the next one begins
			time.AfterFunc(each*time.Duration(now.lasts)/100, p.Heal)
		}
	}
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
