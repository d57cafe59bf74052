// Package leak fails a package's tests when they leave goroutines behind.
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

// patience bounds how long goroutines that are on their way out may take.
const patience = time.Minute

// Main is a package's whole TestMain: it runs the tests and then fails if a goroutine started by
// them is still there. It also fails as soon as one test takes a quarter of the time limit of all.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // tests hold little, and leave much
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

// Check fails t if, when t and its cleanups registered later are done, goroutines are there that
// were not when Check was called.
func Check(t testing.TB) {
	before := map[string]bool{}
	for _, g := range goroutines() {
		before[id(g)] = true
	}
	t.Cleanup(func() {
		var left []string
		for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
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

// Stack returns where another goroutine is, by the name that Self has returned in it, or "" if it
// has ended.
func Stack(name string) string {
	for _, g := range goroutines() {
		if id(g) == name {
			return g
		}
	}
	return ""
}

// settle waits until no goroutine is left, and returns the stacks of those that stay longer than d.
func settle(d time.Duration) string {
	for end := time.Now().Add(d); ; <-time.After(5 * time.Millisecond) {
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

// foreign reports whether g belongs to the runtime or the test runner rather than to a test.
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
