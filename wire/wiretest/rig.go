package wiretest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

// most is the read limit of checks that are not about the limit.
const most = 4 << 20

// rig runs one check on the two ends of a connection. Only the goroutine of the check may call
// methods that can fail it; other goroutines return their errors to it.
type rig struct {
	T
	a, b wire.Wire
	checkPatience
	hung *bool // set when a method has not returned in time; later checks are then skipped
}

// checkPatience is how long a check waits before it considers a method to hang.
type checkPatience struct {
	carry time.Duration // for methods that carry frames
	end   time.Duration // for methods that may not block, or that Close or a deadline ends
}

// fail ends the check.
func (r *rig) fail(format string, args ...any) {
	r.Helper()
	r.Errorf(format, args...)
	r.FailNow()
}

// ok fails the check if err is not nil.
func (r *rig) ok(err error, what string) {
	r.Helper()
	if err != nil {
		r.fail("%s failed: %v", what, err)
	}
}

// checkTask is a function that runs on its own goroutine.
type checkTask struct {
	what string
	done chan error
	name chan string // of the goroutine, for leak.Stack
}

// start runs f as a task.
func start(what string, f func() error) checkTask {
	t := checkTask{what, make(chan error, 1), make(chan string, 1)}
	go func() {
		t.name <- leak.Self()
		t.done <- f()
	}()
	return t
}

// await waits for t, which carries frames, and returns its result. It fails the check if there is
// none in time.
func (r *rig) await(t checkTask) error {
	r.Helper()
	return r.within(r.carry, t)
}

// awaitEnd is await for tasks that may not block, or no longer.
func (r *rig) awaitEnd(t checkTask) error {
	r.Helper()
	return r.within(r.end, t)
}

func (r *rig) within(d time.Duration, t checkTask) error {
	r.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-t.done:
		return err
	case <-timer.C:
		r.hangs(d, t)
		r.FailNow()
		return nil
	}
}

// hangs reports tasks that have not returned, with their stacks.
func (r *rig) hangs(after time.Duration, tasks ...checkTask) {
	r.Helper()
	*r.hung = true
	for _, t := range tasks {
		r.Errorf("%s has not returned after %v. It is here:\n\n%s", t.what, after, leak.Stack(<-t.name))
	}
}

// closeBoth closes both ends after a check, at the same time, because a Close may wait for that of
// the peer. It waits for neither if a method hangs already.
func (r *rig) closeBoth() {
	const what = "Close behind the check"
	for _, closing := range []checkTask{start(what, r.a.Close), start(what, r.b.Close)} {
		if *r.hung {
			continue
		}
		select {
		case <-closing.done:
		case <-time.After(r.end):
			r.hangs(r.end, closing)
		}
	}
}

// must waits for all tasks. It fails the check as soon as one has failed, because that failure may
// be why other tasks hang.
func (r *rig) must(tasks ...checkTask) {
	r.Helper()
	type result struct {
		checkTask
		err error
	}
	results := make(chan result, len(tasks))
	for _, t := range tasks {
		go func() { results <- result{t, <-t.done} }() // ends with t
	}
	timeout := time.After(r.carry)
	for running := slices.Clone(tasks); len(running) > 0; {
		select {
		case d := <-results:
			r.ok(d.err, d.what)
			running = slices.DeleteFunc(running, func(t checkTask) bool { return t == d.checkTask })
		case <-timeout:
			r.hangs(r.carry, running...)
			r.FailNow()
		}
	}
}

// do runs f and returns its result. It fails the check if f does not return in time.
func (r *rig) do(what string, f func() error) error {
	r.Helper()
	return r.await(start(what, f))
}

// atOnce is do for functions that may not block.
func (r *rig) atOnce(what string, f func() error) error {
	r.Helper()
	return r.awaitEnd(start(what, f))
}

// write starts to write frames, one per call.
func write(w wire.Wire, frames ...[]byte) checkTask {
	return start("WriteFrames", func() error {
		for _, f := range frames {
			if err := w.WriteFrames([][]byte{f}); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeAll starts to write frames in one call.
func writeAll(w wire.Wire, frames [][]byte) checkTask {
	return start("WriteFrames", func() error { return w.WriteFrames(frames) })
}

// expect starts to read, and compares the frames received with frames.
func expect(w wire.Wire, frames ...[]byte) checkTask {
	return start("ReadFrame of what was written", func() error {
		for i, want := range frames {
			got, err := w.ReadFrame(most)
			if err != nil {
				return fmt.Errorf("frame %d of %d: %w", i+1, len(frames), err)
			}
			if err := same(got, want); err != nil {
				return fmt.Errorf("frame %d of %d: %w", i+1, len(frames), err)
			}
		}
		return nil
	})
}

// soon gives t a moment to end or block. This makes a check stronger, but is not needed for its
// correctness.
func (r *rig) soon(t checkTask) {
	select {
	case err := <-t.done:
		t.done <- err
	case <-time.After(20 * time.Millisecond):
	}
}

// returns fails the check unless f returns at once.
func (r *rig) returns(what string, f func()) {
	r.Helper()
	r.atOnce(what, func() error { f(); return nil })
}

func (r *rig) close(w wire.Wire) {
	r.Helper()
	r.ok(r.atOnce("Close", w.Close), "Close")
}

// closed fails the check unless t ends with net.ErrClosed.
func (r *rig) closed(t checkTask) {
	r.Helper()
	if err := r.awaitEnd(t); !errors.Is(err, net.ErrClosed) {
		r.fail("%s: the error is %v, which does not wrap net.ErrClosed", t.what, err)
	}
}

// T has the methods of [testing.T] that a check needs.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}
