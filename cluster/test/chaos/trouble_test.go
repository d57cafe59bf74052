//go:build unix

package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// drawing returns the random source of one goroutine.
func drawing(seed, whoami uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, whoami)) }

// trouble runs all kinds of faults concurrently for a while. When it returns, all faults are over,
// and everything runs.
func (w *world) trouble(seed uint64, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all sync.WaitGroup
	for i, r := range w.replicas {
		all.Go(func() { w.troubleReplica(ctx, r, i, drawing(seed, uint64(i))) }) // ends with ctx
	}
	all.Go(func() { w.restartServers(ctx, drawing(seed, 101)) }) // ends with ctx
	all.Go(func() { w.cutWires(ctx, drawing(seed, 102)) })       // ends with ctx
	all.Wait()
}

// troubleReplica kills, pauses and stops a replica in random order. first selects the first fault.
func (w *world) troubleReplica(ctx context.Context, r *replica, first int, rng *rand.Rand) {
	hows := []func(*replica, *rand.Rand){w.killReplica, w.pauseReplica, w.stopReplica, w.killReplica, w.pauseReplica}
	until := context.Background() // the first fault happens even on a slow machine
	for how := first; wait.HoldOff(until, lease/4+upTo(rng, 3*lease)); how = rng.IntN(len(hows)) {
		until = ctx
		if err := r.now.failed(); err != nil {
			w.t.Error(err)
			return
		}
		if hows[how](r, rng); r.now == nil {
			return // it cannot be started
		}
	}
}

func (w *world) killReplica(r *replica, rng *rand.Rand) {
	defer w.events.begin("kill -9", r.way.name)()
	r.now.kill()
	w.startAgain(r, rng)
}

func (w *world) stopReplica(r *replica, rng *rand.Rand) {
	defer w.events.begin("shut down", r.way.name)()
	if err := r.now.stop(); err != nil {
		w.t.Errorf("%s: %v", r.way.name, err)
	}
	w.startAgain(r, rng)
}

// startAgain restarts a replica, in most cases at once.
func (w *world) startAgain(r *replica, rng *rand.Rand) {
	if rng.IntN(3) == 0 {
		wait.HoldOff(context.Background(), upTo(rng, lease))
	}
	w.startReplica(r)
}

// pauseReplica suspends the process of a replica, in two of three cases for longer than its lease.
func (w *world) pauseReplica(r *replica, rng *rand.Rand) {
	defer w.events.begin("pause", r.way.name)()
	if err := r.now.pause(); err != nil {
		w.t.Errorf("%s: %v", r.way.name, err)
	}
	wait.HoldOff(context.Background(), upTo(rng, 3*lease))
	if err := r.now.goOn(); err != nil {
		w.t.Errorf("%s: %v", r.way.name, err)
	}
}

// restartServers restarts the NATS servers in turns.
func (w *world) restartServers(ctx context.Context, rng *rand.Rand) {
	for i := 0; wait.HoldOff(ctx, lease/2+upTo(rng, 2*lease)) && w.awaitCurrent(ctx); i++ {
		s := w.servers[i%len(w.servers)]
		if w.restartServer(s, rng); s.now == nil {
			return // it cannot be started
		}
	}
}

// restartServer kills a server, or shuts it down, and starts it again.
func (w *world) restartServer(s *natsServer, rng *rand.Rand) {
	if err := s.now.failed(); err != nil {
		w.t.Error(err)
	}
	if rng.IntN(2) == 0 {
		defer w.events.begin("kill -9", s.clients.name)()
		s.now.kill()
	} else {
		defer w.events.begin("shut down", s.clients.name)()
		if err := s.now.stop(); err != nil {
			w.t.Errorf("%s: %v", s.clients.name, err)
		}
	}
	wait.HoldOff(context.Background(), upTo(rng, lease/2))
	w.startServer(s)
}

// awaitCurrent waits until all servers are in sync, before the next of three is restarted. It
// reports false if ctx ends before.
func (w *world) awaitCurrent(ctx context.Context) bool {
	for !w.isCurrent(ctx) {
		if !wait.HoldOff(ctx, lease/20) {
			return false
		}
	}
	return true
}

func (w *world) isCurrent(ctx context.Context) bool {
	if len(w.servers) == 1 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	names := w.js.StreamNames(ctx)
	for name := range names.Name() { // a list of streams contains only those with a leader
		s, err := w.js.Stream(ctx, name)
		if err != nil || !isComplete(s.CachedInfo().Cluster) {
			return false
		}
	}
	return names.Err() == nil
}

// isComplete reports whether a stream has a leader, and all other servers follow it.
func isComplete(c *jetstream.ClusterInfo) bool {
	if c == nil || c.Leader == "" {
		return false
	}
	for _, p := range c.Replicas {
		if !p.Current || p.Offline || p.Lag > 0 {
			return false
		}
	}
	return len(c.Replicas) > 0
}

// cutWires cuts random wires: those of callers, and those that lead to the servers.
func (w *world) cutWires(ctx context.Context, rng *rand.Rand) {
	all := []*way{w.front}
	for _, r := range w.replicas {
		all = append(all, r.way)
	}
	for _, s := range w.servers {
		all = append(all, s.clients)
	}
	until := context.Background() // as for replicas
	for wait.HoldOff(until, lease/20+upTo(rng, lease/2)) {
		if way := all[rng.IntN(len(all))]; way.cutOne(rng) {
			until = ctx
			w.events.begin("cut a wire to", way.name)()
		}
	}
}

// upTo returns a random time below d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
