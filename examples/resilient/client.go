package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	callers   = 16
	callsEach = 2 * time.Millisecond // in addition each caller waits for its answer
	patience  = time.Minute          // at the end, for the missing answers
)

// client calls all the time, and measures the time without answers.
type client struct {
	made, answered atomic.Int64
	losses         atomic.Int64 // how often the connection was lost
	sessions       atomic.Int64

	mu      sync.Mutex
	session asterisque.SessionID // guarded by mu, as all below; the current one
	lostAt  time.Time            // when the connection was lost; zero while there is one
	away    time.Duration        // duration of the last outage
	last    time.Time            // time of the last answer
	gap     time.Duration        // the longest time without an answer, since the last report
	longest time.Duration        // the longest of all
	failed  error                // the first error of a call
}

func newClient() *client { return &client{last: time.Now()} }

// changed is called when the connection is lost, and when it is back.
func (c *client) changed(conn *asterisque.Connection, state asterisque.ConnectionState, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case state == asterisque.Reconnecting:
		c.losses.Add(1)
		c.lostAt = time.Now()
	case state == asterisque.Connected:
		if !c.lostAt.IsZero() {
			c.away, c.lostAt = time.Since(c.lostAt), time.Time{}
		}
		if id := conn.Session().ID(); id != c.session {
			c.session = id
			c.sessions.Add(1)
		}
	}
}

// call starts all callers. over stops them, waits for their open calls, and returns the first error
// of a call.
func (c *client) call(ctx context.Context, conn *asterisque.Connection) (over func() error) {
	until, stop := context.WithCancel(ctx)
	// wait for answers, also after an interrupt
	limit, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() { c.caller(until, limit, conn, caller) }) // ends with until
	}
	return func() error {
		stop()
		timer := time.AfterFunc(patience, giveUp)
		all.Wait()
		timer.Stop()
		giveUp()
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.failed
	}
}

func (c *client) caller(until, limit context.Context, conn *asterisque.Connection, caller int) {
	tick := time.NewTicker(callsEach)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-tick.C:
		case <-until.Done():
			return
		}
		c.made.Add(1)
		got, err := count.Call(limit, conn, order{caller, n})
		if err == nil && got != n {
			err = fmt.Errorf("the answer is %d", got)
		}
		c.note(caller, n, err)
		if err != nil {
			return
		}
	}
}

// note counts an answer.
func (c *client) note(caller int, n uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.failed == nil {
			c.failed = fmt.Errorf("call %d of caller %d: %w", n, caller, err)
		}
		return
	}
	c.answered.Add(1)
	now := time.Now()
	c.gap = max(c.gap, now.Sub(c.last))
	c.longest = max(c.longest, c.gap)
	c.last = now
}

// report returns the duration of the last outage and the longest time without an answer, both since
// the previous report.
func (c *client) report() (away, gap time.Duration, connected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	away, gap = c.away, max(c.gap, time.Since(c.last))
	c.away, c.gap = 0, 0
	return away, gap, c.lostAt.IsZero()
}
