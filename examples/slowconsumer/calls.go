package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// echo is the call beside all other traffic, to see whether it suffers.
var echo = asterisque.Func[string, string](11, "echo")

// caller makes calls, and records their durations.
type caller struct {
	mu    sync.Mutex
	taken latencies // guarded by mu; since the last look
}

// run makes a call each millisecond, one after the other, until ctx or the session ends. The ticker
// makes the lines comparable: as many calls a second as possible would measure how busy the
// processor is.
func (c *caller) run(ctx context.Context, sess *asterisque.Session) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		begin := time.Now()
		if _, err := echo.Call(ctx, sess, "are you there?"); err != nil {
			return // the show is over
		}
		c.mu.Lock()
		c.taken = append(c.taken, time.Since(begin))
		c.mu.Unlock()
	}
}

// look returns the latencies recorded since the last call.
func (c *caller) look() latencies {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.taken
	c.taken = nil
	slices.Sort(l)
	return l
}

// latencies are durations of calls, in ascending order.
type latencies []time.Duration

// percentile returns the time that p of 100 calls did not exceed, in readable form.
func (l latencies) percentile(p int) string {
	if len(l) == 0 {
		return "-"
	}
	d := l[(len(l)-1)*p/100]
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}
