package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// table prints the show. It is for one goroutine.
type table struct {
	out   io.Writer     // these are fixed
	begin time.Time     //
	beat  time.Duration // between two lines
}

// say prints a line of text.
func (t *table) say(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

// title begins a part of the show.
func (t *table) title(format string, args ...any) {
	t.say("\n"+format, args...)
}

// head prints the names of the columns.
func (t *table) head() {
	t.say("\n%7s  %8s  %8s  %-20s  %-20s  %-12s  %5s  %6s  %6s  %8s",
		"time", "sent", "taken", "sender holds", "consumer holds", "slowest pipe", "calls", "p50", "p99", "heap")
}

// row is one line: the current state, and the events since the last one.
type row struct {
	sent, taken      int64 // bytes of Blocks, from the beginning
	sender, consumer held
	slowest          string
	calls            latencies // since the last row
}

// held is the content of one direction of a session.
type held struct {
	amount  limits.Amount
	state   limits.State
	changes int64 // of state in this direction of any session of the node, since the last row
}

func (h held) String() string {
	s := fmt.Sprintf("%8s %s", amount(int64(h.amount.Bytes)), h.state)
	if h.changes > 0 {
		s += fmt.Sprintf(" %d×", h.changes)
	}
	return s
}

// print prints r, and the size of the heap of this process.
func (t *table) print(r row) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.say("%5.2f s  %8s  %8s  %-20v  %-20v  %-12s  %5d  %6s  %6s  %8s",
		time.Since(t.begin).Seconds(), amount(r.sent), amount(r.taken), r.sender, r.consumer, r.slowest,
		len(r.calls), r.calls.percentile(50), r.calls.percentile(99), amount(int64(m.HeapInuse)))
}

// amount returns a number of bytes in readable form, in at most 8 characters.
func amount(n int64) string {
	switch {
	case n == 0:
		return "0"
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", max(n>>10, 1))
	default:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
}
