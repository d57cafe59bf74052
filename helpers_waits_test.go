package asterisque_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var background = context.Background()

// hangs is how long a test waits for an event before it fails: no machine is so slow.
const hangs = 2 * time.Minute

// settled waits until ok reports true.
func settled(t testing.TB, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, hangs, time.Millisecond)
}

// wantIdle fails unless the sessions come to hold nothing.
func wantIdle(t testing.TB, sessions ...*asterisque.Session) {
	t.Helper()
	for _, s := range sessions {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, busy(s)) }, hangs, time.Millisecond)
	}
}

// busy returns what a session holds that is to be nothing once no call runs.
func busy(s *asterisque.Session) string {
	st := s.Stats()
	if st.Pipes == 0 && st.Waiting == 0 && st.Running == 0 && st.Inbound == (limits.Amount{}) && st.Outbound == (limits.Amount{}) {
		return ""
	}
	return fmt.Sprintf("pipes %d, waiting %d, running %d, inbound %v, outbound %v", st.Pipes, st.Waiting, st.Running, st.Inbound, st.Outbound)
}

// canceled returns a context that has ended.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

func asAbort(err error, a **asterisque.Abort) bool { return errors.As(err, a) }

var errBroken = errors.New("broken")

// long returns the larger number if the long versions of the tests are to run.
func long(usual, long int) int {
	if *soak {
		return long
	}
	return usual
}

// calls makes calls, each in a goroutine, once the one before has got as far as it can; so they
// arrive in this order.
func calls(wg *sync.WaitGroup, n int, call func(i int)) {
	for i := range n {
		wg.Go(func() { call(i) })
		synctest.Wait()
	}
}

// skipRace skips a test that moves much or measures, and whose goroutines do no more than those of
// other tests: with the race detector it takes ten times as long, and shows nothing.
func skipRace(t testing.TB) {
	t.Helper()
	if race.Enabled && !*soak {
		t.Skip("it measures: with the race detector only with -soak")
	}
}

// sampled reports whether row n of a large table is run: with the race detector each third one.
func sampled(n int) bool { return !race.Enabled || *soak || n%3 == 0 }
