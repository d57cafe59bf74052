package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen shows the servers and the events: in place on a terminal, otherwise line by line.
type screen struct {
	out      io.Writer // these are fixed
	terminal bool
	begin    time.Time
	servers  []*server
	tally    *tally

	mu     sync.Mutex
	drawn  int      // guarded by mu, as events: number of lines to overwrite
	events []string // on a terminal, the last ones
}

const (
	redrawEach = 100 * time.Millisecond // on a terminal
	tableEach  = 2 * time.Second        // elsewhere
	mostEvents = 12
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

// follow draws the table until ctx ends, and once more then.
func (s *screen) follow(ctx context.Context) {
	each := tableEach
	if s.terminal {
		each = redrawEach
	}
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		s.draw()
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.draw()
			return
		}
	}
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
}

const (
	heading = "%-8s %-9s %7s %13s %16s %13s"
	row     = "%-8s %-9s %7d %13s %16s %13s"
)

// draw writes the table, over the previous one if possible.
func (s *screen) draw() {
	lines := []string{fmt.Sprintf(heading, "server", "state", "agents", "calls served", "calls to agents", "streams open")}
	for _, srv := range s.servers {
		state, agents := srv.doing()
		lines = append(lines, fmt.Sprintf(row, srv.name, state, agents.len(), thousands(srv.served.Load()), thousands(srv.called.Load()), thousands(srv.streams.Load())))
	}
	lines = append(lines, "")
	s.mu.Lock()
	defer s.mu.Unlock()
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

// summary prints the totals of the run, without those that are 0.
func (s *screen) summary() {
	t := s.tally
	fmt.Fprintln(s.out)
	for _, l := range []struct {
		n    int64
		what string
	}{
		{t.reports.Load(), "calls of agents were answered by a server"},
		{t.described.Load(), "calls of the controller were answered by an agent that cannot be dialled"},
		{t.runs.Load(), "commands were followed to their last line"},
		{t.cancelled.Load(), "commands were cancelled, and ended on their agent"},
		{t.streams.Load(), "streams were begun in all"},
		{t.moved.Load(), "endless streams went on with another server, because theirs drained"},
		{t.elsewhere.Load(), "calls met a server that just went away, and were made through another"},
		{t.restarts.Load(), "restarts of servers"},
	} {
		if l.n > 0 {
			fmt.Fprintf(s.out, "%8s %s\n", thousands(l.n), l.what)
		}
	}
	fmt.Fprintf(s.out, "%8s failed\n", thousands(t.failed.Load()))
	if err := t.err(); err != nil {
		fmt.Fprintln(s.out, "the first of them:", err)
	}
}

// thousands returns n with commas.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
