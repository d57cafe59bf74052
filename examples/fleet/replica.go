package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/pool"
)

// replica is one of the nodes that take orders. It repeatedly asks agents about their vans: by
// their ids, through NATS, as agents have no address.
type replica struct {
	id      string // these are fixed
	ledger  *ledger
	cluster *cluster.Cluster
	agents  atomic.Pointer[pool.Pool] // nil until it is created: other goroutines may look before
}

const (
	askers  = 20 // each of them waits for its answer
	askEach = 300 * time.Millisecond

	// mostEnd is the time limit for a graceful shutdown.
	mostEnd = time.Minute
)

// runReplica runs a replica until ctx ends, or another replica takes its place.
func runReplica(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	j, err := openJournal(o.journal())
	if err != nil {
		return err
	}
	defer j.close()
	r := &replica{id: o.id, ledger: newLedger(j)}
	if err := r.join(ctx, o, log); err != nil {
		return err
	}
	defer r.close()
	sc.say("%s takes orders", r.id)
	return untilOver(ctx, r.cluster, r.ask)
}

// join joins the cluster.
func (r *replica) join(ctx context.Context, o *options, log *slog.Logger) (err error) {
	opts := resuming(answers,
		asterisque.WithHooks(asterisque.Hooks{SessionBack: r.back}), asterisque.WithInboundInterceptors(r.watch),
		asterisque.WithService(r.service()), asterisque.WithLogger(log))
	if r.cluster, err = cluster.Join(ctx, o.replicaConfig(), opts...); err != nil {
		return err
	}
	p, err := r.cluster.Caller(context.WithoutCancel(ctx), agentsName, cluster.WithPool(hasty))
	if err != nil {
		return errors.Join(err, r.cluster.Close())
	}
	r.agents.Store(p)
	return nil
}

func (r *replica) close() error {
	return errors.Join(r.agents.Load().Close(), r.cluster.Close())
}

// service has the functions of the replica.
func (r *replica) service() *asterisque.Service {
	svc := asterisque.NewService()
	placeOrder.Handle(svc, func(ctx context.Context, o order) (receipt, error) {
		return receipt{o.Number, r.id}, r.ledger.run(ctx, o.Number, "", mostPlaced)
	})
	r.ledger.offer(svc, func() int { return ready(r.agents.Load()) })
	return svc
}

// ready returns the number of available servers of a Pool. p may be nil.
func ready(p *pool.Pool) (n int) {
	if p == nil {
		return 0
	}
	for _, s := range p.Servers() {
		if s.Ready {
			n++
		}
	}
	return n
}

// ask asks agents until ctx ends, and returns after the last answers.
func (r *replica) ask(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for range askers {
		all.Go(func() error { return r.asker(ctx) })
	}
	return all.Wait()
}

func (r *replica) asker(ctx context.Context) error {
	for rest(ctx, askEach/2+rand.N(askEach)) == nil {
		members, err := r.cluster.Members(ctx, agentsName)
		if err != nil || len(members) == 0 {
			continue // no agent is known yet
		}
		agent := members[rand.IntN(len(members))].ID
		err = r.ledger.call(ctx, errand{r.id, "agent", "", patience}, func(ctx context.Context, call number) error {
			v, err := howFull.Call(ctx, r.agents.Load().At(agent), question{call})
			if err == nil && v.Agent != agent {
				err = errors.New("another agent has answered")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// untilOver runs the work of a node until ctx ends, or it has left the cluster, and then waits for
// running calls.
func untilOver(ctx context.Context, c member, work func(ctx context.Context) error) error {
	both, working := errgroup.WithContext(ctx)
	both.Go(func() error { return work(working) })
	both.Go(func() error {
		select {
		case <-c.Done():
			return c.Err()
		case <-working.Done():
			return nil
		}
	})
	err := both.Wait()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostEnd)
	defer cancel()
	return errors.Join(err, c.Shutdown(ending))
}
