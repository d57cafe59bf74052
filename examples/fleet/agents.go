package main

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
)

const mostJoining = 10 // agents at the same time

// runAgents runs agents until ctx ends. They are in a depot, a separate node, which the control can
// ask for all of them.
func runAgents(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	j, err := openJournal(o.journal())
	if err != nil {
		return err
	}
	defer j.close()
	l := newLedger(j)
	all, err := newAgents(ctx, o, l, log)
	defer closeAgents(all)
	if err != nil {
		return err
	}
	depot, err := openDepot(ctx, o, l, all, log)
	if err != nil {
		return err
	}
	defer depot.Close()
	sc.say("%d agents are there, %s to %s", len(all), all[0].id, all[len(all)-1].id)
	work, ctx := errgroup.WithContext(ctx)
	for _, a := range all {
		work.Go(func() error { return a.work(ctx) })
	}
	work.Go(func() error { return untilOver(ctx, depot, idle) })
	return work.Wait()
}

// idle does nothing until ctx ends.
func idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// newAgents joins the cluster with all agents, and returns the created ones even with an error.
func newAgents(ctx context.Context, o *options, l *ledger, log *slog.Logger) ([]*agent, error) {
	all := make([]*agent, o.agents)
	joining, ctx := errgroup.WithContext(ctx)
	joining.SetLimit(mostJoining)
	for n := range all {
		joining.Go(func() (err error) {
			all[n], err = newAgent(ctx, o, n, l, log)
			return err
		})
	}
	return all, joining.Wait()
}

// closeAgents closes those that are still open.
func closeAgents(all []*agent) {
	var closing errgroup.Group
	for _, a := range all {
		if a != nil {
			closing.Go(a.close)
		}
	}
	closing.Wait()
}

// openDepot joins the cluster with the depot, at an address, so that it can be asked during an
// outage of NATS.
func openDepot(ctx context.Context, o *options, l *ledger, all []*agent, log *slog.Logger) (*cluster.Cluster, error) {
	svc := asterisque.NewService()
	l.offer(svc, func() (n int) {
		for _, a := range all {
			n += a.sessions()
		}
		return n
	})
	cfg := o.config(depotsName, o.id)
	cfg.Listen = []string{"tcp://" + o.listen}
	depot, err := cluster.Join(ctx, cfg, asterisque.WithService(svc), asterisque.WithLogger(log))
	if err != nil {
		return nil, fmt.Errorf("the depot: %w", err)
	}
	return depot, nil
}
