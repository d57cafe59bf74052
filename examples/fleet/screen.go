package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen shows the figures of all processes, and the events: in place on a terminal, otherwise line
// by line.
type screen struct {
	out      io.Writer // these are fixed
	terminal bool
	begin    time.Time

	mu     sync.Mutex
	last   []row    // guarded by mu, as all below
	drawn  int      // number of lines to overwrite
	events []string // on a terminal, the last ones
}

const (
	redrawEach = 500 * time.Millisecond // on a terminal
	tableEach  = 2 * time.Second        // elsewhere
	mostEvents = 16
)

func newScreen(out io.Writer) *screen {
	return &screen{out: out, terminal: isTerminal(out), begin: time.Now()}
}

// isTerminal reports whether the output can be overwritten.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("CI") != "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// each is the interval between tables.
func (s *screen) each() time.Duration {
	if s.terminal {
		return redrawEach
	}
	return tableEach
}

// say reports an event.
func (s *screen) say(format string, args ...any) {
	line := fmt.Sprintf("%5.1f s  %s", time.Since(s.begin).Seconds(), fmt.Sprintf(format, args...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		fmt.Fprintln(s.out, line)
		return
	}
	s.events = append(s.events, line)
	s.events = s.events[max(0, len(s.events)-mostEvents):]
	s.drawLocked()
}

// draw shows the table.
func (s *screen) draw(rows []row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = rows
	s.drawLocked()
}

const (
	heading = "%-14s %-7s %10s %8s %8s %8s %7s  %s"
	line    = "%-14s %-7s %10s %8s %8s %8d %7d  %s"
)

// drawLocked writes the table and, on a terminal, the events below, over the previous output.
func (s *screen) drawLocked() {
	lines := []string{fmt.Sprintf(heading, "", "", "answers/s", "calls/s", "p99", "waiting", "failed", "sessions")}
	for _, r := range s.last {
		lines = append(lines, r.String())
	}
	lines = append(lines, "")
	if !s.terminal {
		fmt.Fprintln(s.out, strings.Join(lines, "\n"))
		return
	}
	lines = append(lines, s.events...)
	var b strings.Builder
	b.WriteString("\x1b[?7l") // cut long lines, since the next draw counts lines
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\n")
	}
	b.WriteString("\x1b[?7h")
	s.drawn = len(lines)
	io.WriteString(s.out, b.String())
}

// String returns r as a line of the table.
func (r row) String() string {
	if r.sessions == "" {
		return fmt.Sprintf("%-14s %s", r.name, r.state)
	}
	p99 := "-"
	if r.p99 > 0 {
		p99 = short(r.p99)
	}
	return fmt.Sprintf(line, r.name, r.state, r.answers, r.calls, p99, r.waiting, r.failed, r.sessions)
}

// short returns d with two or three digits.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// thousands returns n with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
