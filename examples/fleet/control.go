package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/pool"
)

// control is a node without a name. It asks each process for its figures, over direct sessions,
// which survive an outage of NATS.
type control struct {
	cluster *cluster.Cluster      // these are fixed
	pools   map[string]*pool.Pool // by name
	away    atomic.Bool           // NATS
	agents  roster                // current while all is shown
}

const (
	askTime = time.Second // for the answer of a process in the table

	// mostAudit is the time limit of the audit, on a busy machine. It is also the time for a
	// complete recovery after a fault.
	mostAudit = 2 * time.Minute
	wellTime  = 10 * time.Second // for one check of the recovery
)

// newControl joins the cluster.
func newControl(ctx context.Context, o *options, log *slog.Logger) (*control, error) {
	c := &control{pools: make(map[string]*pool.Pool)}
	cfg := o.config("", "")
	cfg.Options = append(cfg.Options,
		nats.DisconnectErrHandler(func(*nats.Conn, error) { c.away.Store(true) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.away.Store(false) }))
	var err error
	if c.cluster, err = cluster.Join(ctx, cfg, resuming(asterisque.WithLogger(log))...); err != nil {
		return nil, err
	}
	for _, name := range []string{ordersName, depotsName} {
		if c.pools[name], err = c.cluster.Caller(context.WithoutCancel(ctx), name, cluster.WithPool(hasty)); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *control) close() error {
	for _, p := range c.pools {
		if p != nil { // it could be made
			p.Close()
		}
	}
	return c.cluster.Close()
}

// parts returns the processes in the cluster.
func (c *control) parts(ctx context.Context) (all []part, err error) {
	for _, name := range []string{ordersName, depotsName} {
		members, err := c.cluster.Members(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			all = append(all, part{name, m.ID, m.Instance, c.agents.of(m.ID), c.pools[name].At(m.ID)})
		}
	}
	return all, nil
}

// ask asks all processes for their figures, with a time limit. anew resets P99.
func (c *control) ask(ctx context.Context, most time.Duration, anew bool) ([]answer, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	parts, err := c.parts(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]answer, len(parts))
	var asking errgroup.Group
	for i, p := range parts {
		asking.Go(func() error {
			f, err := look.Call(ctx, p.at, anew)
			all[i] = answer{p, f, err}
			return nil
		})
	}
	asking.Wait()
	return all, nil
}

// follow shows the figures of all processes, until ctx ends.
func (c *control) follow(ctx context.Context, sc *screen) {
	tick := time.NewTicker(sc.each())
	defer tick.Stop()
	var b board
	for drawing := false; ; drawing = true { // later figures are compared with the first ones
		answers, err := c.ask(ctx, askTime, true)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			b.take(time.Now(), answers)
		}
		if drawing {
			sc.draw(b.rows(c.away.Load()))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell reports changes among the replicas, until ctx ends.
func (c *control) tell(ctx context.Context, sc *screen) {
	for change, err := range c.cluster.Watch(ctx, ordersName) {
		if err == nil {
			sc.say("the cluster: %s %s", change.Member.ID, change.Kind)
		}
	}
}

// wanted is the complete fleet, in which all members call each other.
type wanted struct {
	replicas, agents int
	sessions         int // of agents with replicas
}

// well returns an error with the members that are missing until all call each other.
func (c *control) well(ctx context.Context, w wanted) error {
	answers, err := c.ask(ctx, wellTime, false)
	if err != nil {
		return err
	}
	there := make(map[string]int)
	for _, a := range answers {
		want := w.agents
		if a.name == depotsName {
			want = w.sessions
		}
		if a.err != nil {
			return fmt.Errorf("%s does not answer: %w", a.id, a.err)
		}
		if a.figures.Sessions < want {
			return fmt.Errorf("%s has %d sessions of %d", a.id, a.figures.Sessions, want)
		}
		there[a.name]++
	}
	if there[ordersName] != w.replicas || there[depotsName] == 0 {
		return fmt.Errorf("of %d replicas %d are there", w.replicas, there[ordersName])
	}
	return nil
}

// await waits for a complete recovery, and returns its duration.
func (c *control) await(ctx context.Context, w wanted) (time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, mostAudit)
	defer cancel()
	for {
		missing := c.well(ctx, w)
		if missing == nil {
			return time.Since(begin), nil
		}
		if rest(ctx, 50*time.Millisecond) != nil {
			return 0, fmt.Errorf("not all is well again after %v: %w", mostAudit, missing)
		}
	}
}

// audit audits all calls, and shows the result. cut is how many wires were cut.
func (c *control) audit(ctx context.Context, sc *screen, cut int) error {
	ctx, cancel := context.WithTimeout(ctx, mostAudit)
	defer cancel()
	parts, err := c.parts(ctx)
	if err != nil {
		return err
	}
	b, err := auditAll(ctx, parts)
	if err != nil {
		return err
	}
	ofAgents, ofReplicas := b.balance(depotsName), b.balance(ordersName)
	sc.summary(ofAgents, ofReplicas, b.noted, cut)
	return errors.Join(ofAgents.check("the agents"), ofReplicas.check("the replicas"))
}

// show shows all, until stop is called.
func (c *control) show(ctx context.Context, sc *screen) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { c.follow(ctx, sc) }) // all end with stop
	all.Go(func() { c.tell(ctx, sc) })
	all.Go(func() { c.agents.follow(ctx, c.cluster) })
	return func() { cancel(); all.Wait() }
}

// runControl shows all until the time is over or ctx ends, and audits the calls then.
func runControl(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	c, err := newControl(ctx, o, log)
	if err != nil {
		return err
	}
	defer c.close()
	stop := c.show(ctx, sc)
	rest(ctx, o.howLong) // an interrupt only ends it sooner
	stop()
	return c.audit(context.WithoutCancel(ctx), sc, 0) // it cuts none
}
