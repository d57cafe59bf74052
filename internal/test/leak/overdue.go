package leak

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// share is the divisor of the time limit of all tests (-timeout) for a single test.
const share = 4

// watchOverdue makes the tests fail as soon as one of them takes too long, and reports where that
// test waits. go test has one limit for all tests together, and synctest reports deadlocks, but not
// a bubble whose timers repeat for ever. The returned
// function ends the watch.
func watchOverdue() (stop func()) {
	if !flag.Parsed() {
		flag.Parse()
	}
	limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration) / share
	if limit <= 0 {
		return func() {}
	}
	stopped := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { // ends when the tests are done
		since := map[string]time.Time{}
		for tick := time.NewTicker(limit / 10); ; {
			select {
			case <-stopped:
				tick.Stop()
				return
			case now := <-tick.C:
				if late := overdue(since, tests(all()), now, limit); late != "" {
					report(late, limit)
				}
			}
		}
	})
	return func() { close(stopped); watch.Wait() }
}

// tests returns those of stacks that run a test or an example themselves. A test that waits for its
// subtests, or for its turn, is in package testing, and is not returned.
func tests(stacks []string) []string {
	var list []string
	for _, g := range stacks {
		_, frames, _ := strings.Cut(g, "\n")
		runs := strings.Contains(frames, "testing.tRunner(") || strings.Contains(frames, "testing.runExample(")
		if runs && !strings.HasPrefix(frames, "testing.") {
			list = append(list, g)
		}
	}
	return list
}

// overdue returns the stack of a test that has existed for longer than the limit. It records in
// since the time at which it has first seen each test.
func overdue(since map[string]time.Time, running []string, now time.Time, limit time.Duration) string {
	there := map[string]bool{}
	for _, g := range running {
		there[id(g)] = true
		begin, known := since[id(g)]
		if !known {
			since[strings.Clone(id(g))] = now // the stacks of all goroutines are one string
		} else if now.Sub(begin) > limit {
			return g
		}
	}
	for g := range since {
		if !there[g] {
			delete(since, g)
		}
	}
	return ""
}

// report ends the program with the stack of the late test and those of all other goroutines.
func report(late string, limit time.Duration) {
	fmt.Fprintf(os.Stderr, "--- FAIL: a test is not done after %v. It stands here:\n\n%s\n\nAnd these are there:\n\n%s\nFAIL\n",
		limit, late, strings.Join(all(), "\n\n"))
	os.Exit(1)
}
