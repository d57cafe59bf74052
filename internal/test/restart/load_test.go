//go:build unix

package restart

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

// callers is the number of goroutines that call concurrently.
const callers = 20

// load is many goroutines that call on one Connection, one call after the other.
type load struct {
	t    *testing.T
	conn *asterisque.Connection
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}    // closed when another server has answered; guarded by mu, as all below
	served  map[int]int      // calls by server
	latest  [callers]int     // the servers of the latest answers
	failed  [callers][]error // by caller
}

// connect connects to a server, until t ends.
func connect(t *testing.T, url string) *asterisque.Connection {
	t.Helper()
	n := asterisque.NewNode()
	t.Cleanup(func() { n.Close() })
	conn, err := n.Connect(context.Background(), url, asterisque.ReconnectConfig{First: 10 * time.Millisecond, Most: 100 * time.Millisecond})
	require.NoError(t, err)
	return conn
}

// begin starts the calls.
func begin(t *testing.T, conn *asterisque.Connection) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{t: t, conn: conn, stop: stop, changed: make(chan struct{}), served: map[int]int{}}
	for i := range callers {
		l.done.Go(func() { // ends with stop
			for ctx.Err() == nil {
				l.call(i)
			}
		})
	}
	t.Cleanup(func() { l.end() })
	return l
}

// call makes one call. Some calls take a moment, so that calls are running at any time.
func (l *load) call(caller int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pid, err := work.Call(ctx, l.conn, caller%4)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed[caller] = append(l.failed[caller], err)
		return
	}
	l.served[pid]++
	if l.latest[caller] != pid {
		l.latest[caller] = pid
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// reach waits until the latest call of each caller was answered by the given server.
func (l *load) reach(pid int) {
	l.t.Helper()
	patience := time.After(2 * time.Minute)
	for {
		l.mu.Lock()
		others := slices.ContainsFunc(l.latest[:], func(p int) bool { return p != pid })
		changed, latest, failed := l.changed, l.latest, l.failed
		l.mu.Unlock()
		if !others {
			return
		}
		select {
		case <-changed:
		case <-patience:
			require.FailNow(l.t, "some callers do not reach the server", "%d: %v, %v", pid, latest, failed)
		}
	}
}

// end ends the calls and returns the errors of each caller.
func (l *load) end() [callers][]error {
	l.stop()
	l.done.Wait()
	return l.failed
}

// requireNoneFailed ends the calls, and requires that none has failed.
func (l *load) requireNoneFailed() {
	l.t.Helper()
	for _, errs := range l.end() {
		require.Empty(l.t, errs, "%v", l.served)
	}
	l.t.Log("calls by server:", l.served)
}
