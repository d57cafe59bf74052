package main

import (
	"regexp"
	"strings"
)

// verdict is the result of the tests of a mutant.
type verdict string

const (
	assertion verdict = "assertion" // a test has failed with a reason
	deadlock  verdict = "deadlock"  // a bubble of synctest has reported a deadlock
	panicked  verdict = "panic"
	race      verdict = "race"
	overdue   verdict = "overdue" // one test has failed because it took too long
	hang      verdict = "hang"    // the tests ran until their timeout
	survived  verdict = "survived"
	skipped   verdict = "skipped" // it does not compile
)

// verdicts contains all verdicts that count, in the order of the table.
var verdicts = []verdict{assertion, deadlock, panicked, race, overdue, hang, survived}

// caught reports whether the tests have failed by themselves.
func (v verdict) caught() bool { return v != hang && v != survived }

// judge derives the verdict from the output of failed tests.
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

// failed returns the tests that output names as failed, or as running at the timeout.
func failed(output string) []string {
	var names []string
	for _, pattern := range []*regexp.Regexp{failures, running} {
		for _, m := range pattern.FindAllStringSubmatch(output, 8) {
			names = append(names, m[1])
		}
	}
	return names
}
