package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// show is three servers, their controller and the agents in one program.
type show struct {
	howLong    time.Duration // these are fixed
	agents     []*agent
	servers    []*server
	controller *controller
	tally      *tally
	screen     *screen
}

// newShow starts all of them, each with its own certificate.
func newShow(life context.Context, howLong time.Duration, agents int, sc *screen, log *slog.Logger) (*show, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	s := &show{howLong: howLong, tally: new(tally), screen: sc}
	var urls []string
	for _, name := range []string{"a", "b", "c"} {
		secure, err := a.config(name, x509.ExtKeyUsageServerAuth)
		if err != nil {
			return s, err
		}
		srv := newServer(name, "tls://127.0.0.1:0", secure, log)
		s.servers = append(s.servers, srv)
		if err := srv.start(life); err != nil {
			return s, err
		}
		urls = append(urls, srv.address())
	}
	s.controller = &controller{servers: s.servers, tally: s.tally}
	sc.servers, sc.tally = s.servers, s.tally
	for n := range agents {
		secure, err := a.config(agentName(n), x509.ExtKeyUsageClientAuth)
		if err != nil {
			return s, err
		}
		ag, err := newAgent(life, agentName(n), secure, urls, s.tally, log)
		if err != nil {
			return s, err
		}
		s.agents = append(s.agents, ag)
	}
	return s, nil
}

// run starts the work, restarts the servers one after the other meanwhile, and ends with a graceful
// shutdown. An interrupt ends it sooner.
func (s *show) run(ctx context.Context) error {
	if err := s.complete(ctx); err != nil {
		return err
	}
	s.screen.say("%d agents have a session with each server, %d in all", len(s.agents), len(s.agents)*len(s.servers))
	until, over := context.WithCancel(ctx)
	defer over()
	var work errgroup.Group
	for _, a := range s.agents {
		work.Go(func() error { a.work(until); return nil })
		work.Go(func() error { s.controller.employ(until, a.name); return nil })
		work.Go(func() error { s.controller.watch(until, a.name); return nil })
	}
	err := s.direct(ctx)
	if err == nil {
		s.screen.say("it is over: what runs finishes")
	}
	over()
	work.Wait()
	return errors.Join(err, s.left())
}

// complete waits until every agent has a session with every server.
func (s *show) complete(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, srv := range s.servers {
		all.Go(func() error { return srv.await(ctx, len(s.agents)) })
	}
	return all.Wait()
}

// direct is the order of events: work, the restarts, and work again.
func (s *show) direct(ctx context.Context) error {
	begin := time.Now()
	if err := rest(ctx, s.howLong/5); err != nil {
		return err
	}
	for _, srv := range s.servers {
		if err := s.restart(ctx, srv); err != nil {
			return err
		}
		if err := rest(ctx, s.howLong/12); err != nil {
			return err
		}
	}
	return rest(ctx, time.Until(begin.Add(s.howLong)))
}

// restart gracefully replaces one server by a new one at the same address, and waits until all
// agents are back.
func (s *show) restart(ctx context.Context, srv *server) error {
	begin := time.Now()
	s.screen.say("server %s drains: agents turn to the others, what runs there finishes", srv.name)
	if err := srv.stop(ctx); err != nil {
		return err
	}
	drained := time.Since(begin)
	if err := srv.start(ctx); err != nil {
		return err
	}
	s.tally.restarts.Add(1)
	if err := srv.await(ctx, len(s.agents)); err != nil {
		return err
	}
	s.screen.say("server %s is new: drained in %v, all agents back after %v", srv.name, round(drained), round(time.Since(begin)))
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// left waits until no agent runs a command any more, cancelled ones included.
func (s *show) left() error {
	ctx, done := context.WithTimeout(context.Background(), longest)
	defer done()
	for _, a := range s.agents {
		for a.running.Load() > 0 {
			if rest(ctx, time.Millisecond) != nil {
				return fmt.Errorf("%s still runs %d commands without a follower", a.name, a.running.Load())
			}
		}
	}
	return nil
}

// close ends the agents, and then the servers.
func (s *show) close() error {
	ctx, done := context.WithTimeout(context.Background(), longest)
	defer done()
	var agents, servers errgroup.Group
	for _, a := range s.agents {
		agents.Go(func() error { return a.stop(ctx) })
	}
	err := agents.Wait()
	for _, srv := range s.servers {
		servers.Go(func() error { return srv.stop(ctx) })
	}
	return errors.Join(err, servers.Wait())
}
