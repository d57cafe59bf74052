package asterisquetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	// patience is how long calls may take to end after their test.
	patience = 5 * time.Second

	// mostTold is how many calls, or other errors, are reported to a test one by one.
	mostTold = 20
)

// callWatch has the running calls of some nodes.
type callWatch struct {
	mu      sync.Mutex
	seen    int                       // guarded by mu; how many calls there were
	running map[*runningCall]struct{} // guarded by mu
}

// runningCall is a running call. All fields are fixed.
type runningCall struct {
	number int    // of the call, among all calls seen
	node   string // makes or serves it
	call   string // its function, for people
	served bool
	place  string // place in the program; outbound calls only
	begun  time.Time
	over   chan struct{} // closed at its end
}

// node returns the options of a watched node.
func (w *callWatch) node(name string, opts []asterisque.Option) []asterisque.Option {
	watched := []asterisque.Option{
		asterisque.WithID(name), asterisque.WithOutboundInterceptors(w.around(name)), asterisque.WithInboundInterceptors(w.around(name)),
	}
	return append(watched, opts...)
}

// around returns an interceptor that follows the calls of a node.
func (w *callWatch) around(node string) asterisque.Interceptor {
	return func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		r := w.begin(node, c)
		opened := false
		defer func() { // next may not return
			if !opened {
				w.end(r)
			}
		}()
		pipes := c.Blocks() && !c.Inbound()
		if pipes {
			end := func(result []byte, err error) ([]byte, error) { w.end(r); return result, err }
			if err := c.WrapBlocks(asterisque.Blocks{End: end}); err != nil {
				return err
			}
		}
		err := next(ctx, c)
		opened = pipes && err == nil
		return err
	}
}

func (w *callWatch) begin(node string, c *asterisque.Call) *runningCall {
	r := &runningCall{node: node, call: functionOf(c.Function(), c.Name()), served: c.Inbound(), begun: time.Now(), over: make(chan struct{})}
	if !r.served {
		r.place = place()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[*runningCall]struct{}{}
	}
	w.seen++
	r.number = w.seen
	w.running[r] = struct{}{}
	return r
}

// end records the end of a call. It may be called again.
func (w *callWatch) end(r *runningCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.running[r]; ok {
		delete(w.running, r)
		close(r.over)
	}
}

// left returns the running calls, oldest first.
func (w *callWatch) left() []*runningCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.running), func(a, b *runningCall) int { return cmp.Compare(a.number, b.number) })
}

// await waits until no call runs, or d has passed, and returns the running calls.
func (w *callWatch) await(d time.Duration) []*runningCall {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		left := w.left()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-left[0].over:
		case <-over.C:
			return w.left()
		}
	}
}

// closeAtEnd closes the nodes at the end of the test, which fails if calls still run.
func (w *callWatch) closeAtEnd(t testing.TB, nodes ...*asterisque.Node) {
	t.Cleanup(func() {
		t.Helper()
		if !t.Failed() && !t.Skipped() {
			if left := w.await(patience); len(left) > 0 {
				t.Errorf("asterisquetest: %s", told(left))
			}
		}
		for _, n := range nodes {
			n.Close()
		}
	})
}

// told returns the text that lists the remaining calls.
func told(left []*runningCall) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d still running %v after the end of the test: wait for results, cancel contexts, abort pipes", len(left), patience)
	for i, r := range left {
		if i == mostTold {
			fmt.Fprintf(&b, "\n\tand %d more", len(left)-i)
			break
		}
		b.WriteString("\n\t" + r.String())
	}
	return b.String()
}

func (r *runningCall) String() string {
	since := time.Since(r.begun).Round(time.Millisecond)
	if r.served {
		return fmt.Sprintf("%s serves %s, for %v", r.node, r.call, since)
	}
	return fmt.Sprintf("%s has called %s at %s, %v ago", r.node, r.call, r.place, since)
}

// functionOf names a function in readable form.
func functionOf(number uint16, name string) string {
	if name == "" {
		return fmt.Sprintf("function %d", number)
	}
	return fmt.Sprintf("function %d %q", number, name)
}
