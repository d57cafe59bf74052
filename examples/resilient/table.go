package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// table prints the events. It is used by one goroutine.
type table struct {
	out   io.Writer
	begin time.Time
	seen  int64 // answers counted in earlier lines
}

const row = "%8s  %-30s  %12s  %12s  %10s\n"

func (t *table) head() {
	fmt.Fprintf(t.out, row, "time", "the connection", "away for", "longest gap", "answers")
}

// line prints the events since the line before.
func (t *table) line(event string, c *client) {
	away, gap, connected := c.report()
	answered := c.answered.Load()
	text := "-"
	switch {
	case !connected:
		text = "still"
	case away > 0:
		text = short(away)
	}
	fmt.Fprintf(t.out, row, fmt.Sprintf("%.1f s", time.Since(t.begin).Seconds()), event, text, short(gap), thousands(answered-t.seen))
	t.seen = answered
}

// summary prints the totals.
func (t *table) summary(c *client, s *server) {
	c.mu.Lock()
	longest := c.longest
	c.mu.Unlock()
	made, answered := c.made.Load(), c.answered.Load()
	fmt.Fprintln(t.out)
	for _, l := range []struct {
		name, value string
	}{
		{"calls made", thousands(made)},
		{"calls answered", thousands(answered)},
		{"calls doubled", thousands(s.doubled.Load())},
		{"calls lost", thousands(made - answered + s.skipped.Load())},
		{"longest gap", short(longest)},
		{"connections lost", thousands(c.losses.Load())},
		{"sessions", thousands(c.sessions.Load())},
	} {
		fmt.Fprintf(t.out, "%-18s%12s\n", l.name, l.value)
	}
}

// short returns d with two or three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// thousands returns n with commas.
func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	s := fmt.Sprint(n)
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), ",")
}
