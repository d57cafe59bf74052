// Package testkit has shared helpers for the tests of the library: nodes and sessions, peers played
// by a test frame by frame, services, wires that can be cut, and waits.
package testkit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Background is the context of calls without a deadline.
var Background = context.Background()

// Patience is how long a test waits for an event before it fails, sufficient for the slowest
// machine.
const Patience = 2 * time.Minute

// Settled waits until ok reports true.
func Settled(t testing.TB, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, Patience, time.Millisecond)
}

// WantIdle fails unless the sessions release all their resources.
func WantIdle(t testing.TB, sessions ...*asterisque.Session) {
	t.Helper()
	for _, s := range sessions {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, Busy(s)) }, Patience, time.Millisecond)
	}
}

// Busy describes the resources of a session that should be free while no call runs, or returns "".
func Busy(s *asterisque.Session) string {
	st := s.Stats()
	if st.Pipes == 0 && st.Waiting == 0 && st.Running == 0 && st.Inbound == (limits.Amount{}) && st.Outbound == (limits.Amount{}) {
		return ""
	}
	return fmt.Sprintf("pipes %d, waiting %d, running %d, inbound %v, outbound %v", st.Pipes, st.Waiting, st.Running, st.Inbound, st.Outbound)
}

// Canceled returns a context that has ended.
func Canceled() context.Context {
	ctx, cancel := context.WithCancel(Background)
	cancel()
	return ctx
}

// AsAbort finds the Abort in an error.
func AsAbort(err error, a **asterisque.Abort) bool { return errors.As(err, a) }

// ErrBroken is an error of the application.
var ErrBroken = errors.New("broken")

// Long returns long if the long versions of the tests are selected, and usual otherwise.
func Long(usual, long int) int {
	if *Soak {
		return long
	}
	return usual
}

// Calls makes n calls on goroutines of their own. Each begins when the one before blocks, so they
// arrive in order.
func Calls(wg *sync.WaitGroup, n int, call func(i int)) {
	for i := range n {
		wg.Go(func() { call(i) })
		synctest.Wait()
	}
}

// SkipRace skips a test under the race detector unless -soak is set. It is for tests that transfer
// or measure much, with the same goroutines as other tests: with the race detector they take ten
// times as long, and find nothing new.
func SkipRace(t testing.TB) {
	t.Helper()
	if race.Enabled && !*Soak {
		t.Skip("it measures: with the race detector only with -soak")
	}
}

// Sampled reports whether row n of a large table is run: every third row with the race detector,
// and all otherwise.
func Sampled(n int) bool { return !race.Enabled || *Soak || n%3 == 0 }

// LeftOf describes the resources of a session that should hold none, or returns "".
func LeftOf(st asterisque.Stats) string {
	var list []string
	for name, n := range map[string]int{
		"pipes": st.Pipes, "waiting": st.Waiting, "running": st.Running, "parked": st.Parked, "holding": st.Holding,
		"inbound messages": st.Inbound.Messages, "inbound bytes": st.Inbound.Bytes, "outbound messages": st.Outbound.Messages, "outbound bytes": st.Outbound.Bytes,
		"Opens": st.Classes.Calls.Held, "nested": st.Classes.Nested.Held, "windows": st.Classes.Windows().Held, "large Blocks": st.Classes.Large.Held,
		"wait for their function": st.WaitPlace.Now, "wait for a window": st.WaitWindow.Now, "wait to open": st.WaitOpens.Now, "wait for the outbound limit": st.WaitOutbound.Now, "wait for a large Block": st.Classes.Large.Waiting,
	} {
		if n != 0 {
			list = append(list, fmt.Sprintf("%s: %d", name, n))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Soak selects the long versions of the tests that have one.
var Soak = flag.Bool("soak", false, "run the long versions of the tests that have one")

// parallel is the number of parallel tests that run at once. Tests that mostly wait are parallel.
const parallel = 8

// Main is a complete TestMain for a package with black-box tests: the tests fail if they leave
// goroutines behind.
func Main(m *testing.M) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(parallel))
	}
	leak.Main(m)
}
