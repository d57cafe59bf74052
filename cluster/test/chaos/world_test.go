//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/pool"
)

// world is the environment of a test: NATS servers, replicas behind forwarders, and callers.
type world struct {
	t        *testing.T // these are fixed
	dir      string
	servers  []*natsServer
	replicas []*replica
	front    *way // one address for all replicas
	events   *events
	js       jetstream.JetStream
}

// natsServer is a NATS server. Its process belongs to the goroutine that restarts it.
type natsServer struct {
	plan            serverPlan
	clients, routes *way
	now             *process
}

// replica is a replica. Its process belongs to the goroutine of its faults.
type replica struct {
	plan replicaPlan
	way  *way
	now  *process
}

const replicaCount = 3

// newWorld starts servers and replicas, which end with the test.
func newWorld(t *testing.T, servers int) *world {
	// the paths of sockets have to be short
	dir, err := os.MkdirTemp("", "chaos")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, events: newEvents(), front: newWay(t, "the front")}
	urls := w.planServers(servers)
	for i := range replicaCount {
		id := string('a' + rune(i))
		r := &replica{way: newWay(t, "replica "+id)}
		r.plan = replicaPlan{
			ID: id, NATS: urls, Replicas: servers, Socket: filepath.Join(dir, id+".sock"),
			Address: "tcp://" + r.way.at(), Register: filepath.Join(dir, id+registerSuffix),
		}
		r.way.leadTo("unix", r.plan.Socket)
		w.replicas = append(w.replicas, r)
	}
	w.front.lead(func() address { return address{"unix", w.replicas[rand.IntN(replicaCount)].plan.Socket} })
	t.Cleanup(w.killAll)
	w.startAll()
	nc, err := nats.Connect(urls, append(natsOptions(), nats.MaxReconnects(-1))...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w.js, err = jetstream.New(nc)
	require.NoError(t, err)
	return w
}

// planServers plans the servers, and returns their client URLs.
func (w *world) planServers(n int) (urls string) {
	var clients, routes []string
	for i := range n {
		name := fmt.Sprint("n", i+1)
		s := &natsServer{clients: newWay(w.t, "server "+name), routes: newWay(w.t, "routes of "+name)}
		s.plan = serverPlan{Name: name, Dir: filepath.Join(w.dir, name), Own: s.routes.at()}
		clients, routes = append(clients, "nats://"+s.clients.at()), append(routes, s.routes.at())
		w.servers = append(w.servers, s)
	}
	for _, s := range w.servers {
		if n > 1 {
			s.plan.Routes = routes
		}
	}
	return strings.Join(clients, ",")
}

// startAll starts all parts concurrently.
func (w *world) startAll() {
	var all sync.WaitGroup
	for _, s := range w.servers {
		all.Go(func() { w.startServer(s) }) // ends when the server works
	}
	all.Wait()
	for _, r := range w.replicas {
		all.Go(func() { w.startReplica(r) }) // ends when the replica has joined
	}
	all.Wait()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// startServer starts a server, and points its forwarders there.
func (w *world) startServer(s *natsServer) {
	p, said, err := startPart("server", s.plan.Name, w.dir, s.plan)
	var at serverAddresses
	if err == nil {
		err = json.Unmarshal([]byte(said), &at)
	}
	if s.now = nil; err != nil {
		w.t.Error(err)
		return
	}
	s.now = p
	s.clients.leadTo("tcp", at.Clients)
	s.routes.leadTo("tcp", at.Servers)
}

func (w *world) startReplica(r *replica) {
	p, _, err := startPart("replica", r.plan.ID, w.dir, r.plan)
	if r.now = p; err != nil {
		r.now = nil
		w.t.Error(err)
	}
}

// killAll kills the remaining processes, and prints their logs if the test has failed.
func (w *world) killAll() {
	for _, p := range w.processes() {
		if p != nil {
			p.kill()
		}
	}
	if !w.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(w.dir, "*.log")) // the pattern is right
	for _, name := range logs {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			w.t.Logf("the end of %s:\n%s", filepath.Base(name), text[max(0, len(text)-mostLog):])
		}
	}
}

// mostLog is the maximum printed size of a process log.
const mostLog = 4 << 10

func (w *world) processes() (all []*process) {
	for _, r := range w.replicas {
		all = append(all, r.now)
	}
	for _, s := range w.servers {
		all = append(all, s.now)
	}
	return all
}

// stopReplicas stops all replicas gracefully, so that their registers are complete.
func (w *world) stopReplicas() {
	for _, r := range w.replicas {
		if r.now == nil {
			continue // it was not started, which has been reported
		}
		if err := r.now.failed(); err != nil {
			w.t.Error(err)
		} else if err := r.now.stop(); err != nil {
			w.t.Errorf("replica %s: %v", r.plan.ID, err)
		}
	}
}

// callers returns callers on all paths.
func (w *world) callers(last context.Context) *callers {
	cs := &callers{last: last}
	soon := asterisque.ReconnectConfig{First: 20 * time.Millisecond, Most: 400 * time.Millisecond, RetryFatal: true}
	for i := range 2 {
		cfg := cluster.Config{NATS: w.replicas[0].plan.NATS, Options: natsOptions(), Replicas: len(w.servers), Identity: "customer", Queue: queueing()}
		c, err := cluster.Join(w.t.Context(), cfg, resuming()...)
		require.NoError(w.t, err)
		w.t.Cleanup(func() { c.Close() })
		p, err := c.Caller(w.t.Context(), theName, cluster.WithPool(pool.Config{Connection: soon}))
		require.NoError(w.t, err)
		w.t.Cleanup(func() { p.Close() })
		cs.customers = append(cs.customers, c)
		cs.paths = append(cs.paths, path{fmt.Sprint("pool ", i+1), p})
	}
	for i := range 3 {
		node := asterisque.NewNode(resuming()...)
		w.t.Cleanup(func() { node.Close() })
		conn, err := node.Connect(w.t.Context(), "tcp://"+w.front.at(), soon)
		require.NoError(w.t, err)
		cs.paths = append(cs.paths, path{fmt.Sprint("connection ", i+1), conn})
	}
	return cs
}
