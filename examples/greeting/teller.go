package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// teller prints one line for each event. It is safe for concurrent use.
type teller struct {
	begin time.Time // fixed

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// tell prints one line: the time, the direction, and the event. In side, the reporting side comes
// first.
func (t *teller) tell(side, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ms := float64(time.Since(t.begin).Microseconds()) / 1000
	fmt.Fprintf(t.out, "%9.2f ms  %-15s  %s\n", ms, side, fmt.Sprintf(format, args...))
}

// roughly returns d, rounded for readers.
func roughly(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
