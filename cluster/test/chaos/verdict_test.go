//go:build unix

package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// wrong returns a description of a call's violation, or "".
func (c *call) wrong(runs []*run) string {
	switch {
	case !c.again && len(runs) > 1:
		return "it has run more than once"
	case c.outcome == odd:
		return c.text
	case c.outcome == open:
		return "it has not ended"
	case c.outcome == notRun && len(runs) > 0:
		return "it is said not to have run, and has"
	case c.outcome == answered && !slices.ContainsFunc(runs, func(r *run) bool { return r.id == c.text && !r.stopped.IsZero() }):
		return fmt.Sprintf("it is answered with %q, which is no run that has ended", c.text)
	}
	return ""
}

// mostShown is the maximum number of violations that are printed.
const mostShown = 5

// judge fails the test for each call with a violation.
func judge(t testing.TB, calls []*call, runs map[int64][]*run, events *events) {
	t.Helper()
	bad := 0
	for _, c := range calls {
		c.mu.Lock()
		wrong := c.wrong(runs[c.work.Call])
		c.mu.Unlock()
		if wrong == "" {
			continue
		}
		if bad++; bad <= mostShown {
			t.Errorf("call %d: %s\n%s", c.work.Call, wrong, c.history(runs[c.work.Call], events))
		}
	}
	if bad > mostShown {
		t.Errorf("there are %d more calls with which something is wrong", bad-mostShown)
	}
	if len(runs) > len(calls) || runs[0] != nil {
		t.Errorf("calls have run that no caller has made")
	}
}

// around is the time before and after a call for which events are printed.
const around = 2 * time.Second

// history returns the attempts and runs of a call, and the events meanwhile.
func (c *call) history(runs []*run, events *events) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to := time.Now(), time.Time{}
	var lines []string
	for _, a := range c.attempts {
		lines = append(lines, a.String())
		from, to = earlier(from, a.from), later(to, a.to)
	}
	for _, r := range runs {
		lines = append(lines, r.String())
		from, to = earlier(from, r.began), later(to, later(r.began, r.stopped))
	}
	lines = append(lines, events.between(from.Add(-around), to.Add(around))...)
	slices.Sort(lines) // by time
	head := fmt.Sprintf("it %s %s; key %s; may run again: %v; posted: %v; takes %v", c.outcome, c.text, c.key, c.again, c.posted, c.work.Takes)
	return head + "\n" + strings.Join(lines, "\n")
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// summary returns the number of calls of each kind and outcome.
func summary(calls []*call, runs map[int64][]*run) string {
	counts := make(map[string]int)
	for _, c := range calls {
		c.mu.Lock()
		kind := "durable"
		if c.posted {
			kind = "posted"
		}
		if c.again {
			kind += ", may run again"
		}
		counts[kind+": "+string(c.outcome)]++
		if len(runs[c.work.Call]) > 1 {
			counts[kind+": ran more than once"]++
		}
		c.mu.Unlock()
	}
	return listed(counts)
}

// listed prints counts in the order of their keys.
func listed(counts map[string]int) string {
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
