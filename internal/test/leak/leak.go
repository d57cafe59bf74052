// Package leak fails the tests of a package if they leave goroutines behind.
package leak

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long ending goroutines may take.
const patience = time.Minute

// Main is a complete TestMain: it runs the tests, and then fails if a goroutine started by them
// still exists. It also fails as soon as one test takes a quarter of the time limit of all tests.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // tests hold little memory and produce much garbage
	}
	stop := watchOverdue()
	code := m.Run()
	stop()
	if code == 0 {
		if left := settle(patience); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines left behind by the tests:\n\n%s\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

// Check fails t if, after t and the cleanups registered later, goroutines exist that did not exist
// when Check was called.
func Check(t testing.TB) {
	before := map[string]bool{}
	for _, g := range goroutines() {
		before[id(g)] = true
	}
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(patience); time.Now().Before(end); pause() {
			left = left[:0]
			for _, g := range goroutines() {
				if !before[id(g)] {
					left = append(left, g)
				}
			}
			if len(left) == 0 {
				return
			}
		}
		t.Errorf("goroutines left behind:\n\n%s", strings.Join(left, "\n\n"))
	})
}

// Self names the calling goroutine, for Stack.
func Self() string {
	b := make([]byte, 64)
	return id(string(b[:runtime.Stack(b, false)]))
}

// Stack returns the stack of another goroutine by the name that Self has returned in it, or "" if
// it has ended.
func Stack(name string) string {
	for _, g := range goroutines() {
		if id(g) == name {
			return g
		}
	}
	return ""
}

// pause waits a little, because the end of a goroutine is no event.
func pause() { time.Sleep(5 * time.Millisecond) } //nolint:forbidigo // see above

// settle waits until no goroutine is left, and returns the stacks of those that exist longer than
// d.
func settle(d time.Duration) string {
	for end := time.Now().Add(d); ; pause() {
		left := strings.Join(goroutines(), "\n\n")
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

// goroutines returns the stacks of all goroutines but the caller's and those of the runtime and
// the testing package.
func goroutines() []string {
	return slices.DeleteFunc(all(), foreign)
}

// all returns the stacks of all goroutines but the caller's.
func all() []string {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	return strings.Split(strings.TrimSpace(string(buf)), "\n\n")[1:]
}

// foreign reports whether g belongs to the runtime or the test runner, and not to a test.
func foreign(g string) bool {
	for _, f := range []string{
		"created by testing.", "created by internal/fuzz.", "created by os/signal.", "created by runtime.",
		"runtime.handleEvent(", // of JavaScript
	} {
		if strings.Contains(g, f) {
			return true
		}
	}
	return false
}

// id returns the "goroutine N" of a stack's first line.
func id(g string) string {
	name, _, _ := strings.Cut(g, " [")
	return name
}
