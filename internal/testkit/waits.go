// Package testkit has what the tests of the library share: nodes and sessions, peers whose frames a
// test writes by hand, services, wires that are cut, and waits.
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
	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Background is the context of what needs none.
var Background = context.Background()

// Patience is how long a test waits for an event before it fails: no machine is so slow.
const Patience = 2 * time.Minute

// Settled waits until ok reports true.
func Settled(t testing.TB, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, Patience, time.Millisecond)
}

// WantIdle fails unless the sessions come to hold nothing.
func WantIdle(t testing.TB, sessions ...*asterisque.Session) {
	t.Helper()
	for _, s := range sessions {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, Busy(s)) }, Patience, time.Millisecond)
	}
}

// Busy returns what a session holds that is to be nothing once no call runs.
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

// Long returns the larger number if the long versions of the tests are to run.
func Long(usual, long int) int {
	if *Soak {
		return long
	}
	return usual
}

// Calls makes calls, each in a goroutine, once the one before has got as far as it can; so they
// arrive in this order.
func Calls(wg *sync.WaitGroup, n int, call func(i int)) {
	for i := range n {
		wg.Go(func() { call(i) })
		synctest.Wait()
	}
}

// SkipRace skips a test that moves much or measures, and whose goroutines do no more than those of
// other tests: with the race detector it takes ten times as long, and shows nothing.
func SkipRace(t testing.TB) {
	t.Helper()
	if race.Enabled && !*Soak {
		t.Skip("it measures: with the race detector only with -soak")
	}
}

// Sampled reports whether row n of a large table is run: with the race detector each third one.
func Sampled(n int) bool { return !race.Enabled || *Soak || n%3 == 0 }

// LeftOf says what a session holds that is to hold nothing.
func LeftOf(st asterisque.Stats) string {
	var list []string
	for name, n := range map[string]int{
		"pipes": st.Pipes, "waiting": st.Waiting, "running": st.Running, "parked": st.Parked, "holding": st.Holding,
		"inbound messages": st.Inbound.Messages, "inbound bytes": st.Inbound.Bytes, "outbound messages": st.Outbound.Messages, "outbound bytes": st.Outbound.Bytes,
		"Opens": st.Opens.Held, "nested": st.Nested.Held, "Blocks": st.Blocks.Promised, "large Blocks": st.Large.Promised,
		"wait for a window": st.WaitWindow.Now, "wait to open": st.WaitOpens.Now, "wait for the outbound limit": st.WaitOutbound.Now, "asking": st.Asking,
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

// parallel is how many parallel tests run at once: those are parallel that wait.
const parallel = 8

// Main is the whole TestMain of a package with black-box tests: it fails when they leave goroutines
// behind.
func Main(m *testing.M) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(parallel))
	}
	leak.Main(m)
}
