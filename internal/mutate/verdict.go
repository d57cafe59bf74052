package main

import (
	"regexp"
	"strings"
)

// verdict is how the tests took a mutant.
type verdict string

const (
	assertion verdict = "assertion" // a test has failed and said why
	deadlock  verdict = "deadlock"  // a bubble of synctest stood still, and said so
	panicked  verdict = "panic"
	race      verdict = "race"
	overdue   verdict = "overdue" // one test has taken so long that it failed
	hang      verdict = "hang"    // the tests were at work until their time was up
	survived  verdict = "survived"
	skipped   verdict = "skipped" // it does not compile
)

// verdicts are all of those that count, in the order of the table.
var verdicts = []verdict{assertion, deadlock, panicked, race, overdue, hang, survived}

// caught reports whether the tests have failed by themselves.
func (v verdict) caught() bool { return v != hang && v != survived }

// judge returns what the output of tests that have failed says.
func judge(output string) verdict {
	switch {
	case strings.Contains(output, "panic: test timed out after"):
		return hang
	case strings.Contains(output, "WARNING: DATA RACE"):
		return race
	case strings.Contains(output, "panic: deadlock: "),
		strings.Contains(output, "all goroutines in bubble are blocked"),
		strings.Contains(output, "fatal error: all goroutines are asleep"):
		return deadlock
	case strings.Contains(output, "--- FAIL: a test is not done after") && !strings.Contains(output, "Error Trace:"):
		return overdue
	}
	if at := crash.FindStringIndex(output); at != nil && !strings.Contains(output[:at[0]], "Error Trace:") {
		return panicked
	}
	return assertion
}

var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault address|SIG[A-Z]+: )`)

var failures = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

var running = regexp.MustCompile(`(?m)^\t+(Test\S+) \(`)

// failed returns the tests that output names as failed, or as running when the time was up.
func failed(output string) []string {
	var names []string
	for _, pattern := range []*regexp.Regexp{failures, running} {
		for _, m := range pattern.FindAllStringSubmatch(output, 8) {
			names = append(names, m[1])
		}
	}
	return names
}
