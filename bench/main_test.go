package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

// TestMain runs the tests, or acts as the benchmark program when a test measures a cell in a
// process of its own.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-cell") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, fakes()))
	}
	leak.Main(m)
}

// fakes are implementations without a peer.
func fakes() []*impl {
	quick := func() error { return nil }
	slow := func() error { wait(5 * time.Millisecond); return nil } // the work of an operation
	return []*impl{
		fake(thisLibrary, quick),
		fake("floor-pingpong", slow),
		fake("broken", func() error { return errors.New("it broke") }),
		fake("hangs", func() error { select {} }),
		fake("panics", func() error { panic("it panicked") }),
		fake("floor-pipelined", slow),
	}
}

func fake(name string, call op) *impl {
	return &impl{name: name, link: (*fakeLink)(nil), listen: func(context.Context, needs) (host, error) { return &fakeLink{call}, nil }}
}

// fakeLink is a link and the host of that link.
type fakeLink struct{ call op }

func (l *fakeLink) dial(context.Context) (link, error)     { return l, nil }
func (l *fakeLink) close()                                 {}
func (l *fakeLink) newCaller(_ []byte, _ bool) (op, error) { return l.call, nil }

// bench runs the program with args and returns what it printed.
func bench(impls []*impl, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), args, &out, &err, impls)
	return code, out.String(), err.String()
}
