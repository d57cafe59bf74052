package asterisquetest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// fakeT implements testing.TB in place of the test of an application.
type fakeT struct {
	testing.TB // nil: all other methods are unused

	ctx     context.Context
	cancel  context.CancelFunc
	skipped bool

	mu       sync.Mutex
	cleanups []func()
	said     []string
}

func newT() *fakeT {
	t := new(fakeT)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// end runs the cleanups of a test, and returns its failures.
func (t *fakeT) end() []string {
	t.cancel()
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			defer t.mu.Unlock()
			return t.said
		}
		last := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		last()
	}
}

// run runs do as a test and returns its failures. do may end by Fatalf.
func run(do func(t *fakeT)) []string {
	t := newT()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(t)
	}()
	<-done
	return t.end()
}

func (t *fakeT) Helper() {}

func (t *fakeT) Context() context.Context { return t.ctx }

func (t *fakeT) Skipped() bool { return t.skipped }

func (t *fakeT) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.said) > 0
}

func (t *fakeT) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *fakeT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, fmt.Sprintf(format, args...))
}

func (t *fakeT) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}
