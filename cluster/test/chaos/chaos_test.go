//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// mostEnd is the time limit for the end of calls after the last fault: a posted call is
	// delivered again 15 s after its replica was lost, or after a server has become the leader. The
	// rest is for slow machines.
	mostEnd = 90 * time.Second

	// pace is the average pause of a caller between two calls.
	pace = 250 * time.Millisecond

	callerCount = 16
	posterCount = 8
)

func TestChaos_ThreeServers(t *testing.T) {
	if !*soak {
		t.Skip("servers that elect leaders take their time: with -soak")
	}
	t.Parallel()
	chaos(t, 3)
}

func TestChaos_OneServer(t *testing.T) {
	t.Parallel()
	chaos(t, 1)
}

// chaos makes calls during faults, and then checks the outcome of each.
func chaos(t *testing.T, servers int) {
	seed := *drawnFrom
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-chaos %v -chaos.seed %d", *trouble, seed)
	w := newWorld(t, servers)
	last, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	cs := w.callers(last)
	making, stop := context.WithCancel(last)
	var calling sync.WaitGroup
	for i := range callerCount + posterCount {
		// ends with making, and its last call
		calling.Go(func() { cs.makeCalls(making, drawing(seed, 200+uint64(i)), pace, i >= callerCount) })
	}
	w.trouble(seed, *trouble)
	stop()
	late := time.AfterFunc(mostEnd, giveUp)
	calling.Wait()
	if late.Stop() {
		w.requireWell(cs)
	}
	w.stopReplicas()
	calls, runs := cs.list(), readRegisters(t, w.dir)
	t.Logf("%s\n%s", summary(calls, runs), listed(w.events.count()))
	judge(t, calls, runs, w.events)
	for _, kind := range []string{"kill -9", "pause", "shut down", "cut a wire to"} {
		require.NotZero(t, w.events.count()[kind], kind)
	}
}

// requireWell expects that calls succeed on each path and are recorded on all, and that posted
// calls succeed, after the last fault. A slow machine may need several attempts.
func (w *world) requireWell(cs *callers) {
	ctx, cancel := context.WithTimeout(cs.last, mostEnd)
	defer cancel()
	for _, p := range cs.paths {
		w.requireOne(func() bool { return cs.isRemembered(ctx, p) }, "call succeeds on "+p.name+", and is remembered elsewhere")
	}
	w.requireOne(func() bool {
		c := newCall()
		c.posted = true
		cs.post(cs.add(c), drawing(0, 0))
		return c.outcome == answered
	}, "posted call succeeds")
}

// requireOne expects that one of a few attempts succeeds.
func (w *world) requireOne(succeeds func() bool, what string) {
	for range 3 {
		if succeeds() {
			return
		}
	}
	w.t.Errorf("now that there is no trouble, no %s", what)
}

// isRemembered makes a call once, repeats it on all other paths, and reports whether the answer is
// the same on all.
func (cs *callers) isRemembered(ctx context.Context, first path) bool {
	c := cs.add(newCall())
	text, err := c.attempt(ctx, "makes it", first)
	c.end(outcomeOf(err), text)
	for _, p := range cs.paths {
		if err != nil {
			return false
		}
		if text, err = c.attempt(ctx, "makes it again", p); err == nil {
			c.compare(text)
		}
	}
	return err == nil
}
