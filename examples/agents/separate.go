package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// roundEach is how often a separate server gives work to its agents.
const roundEach = time.Second

// runServer serves at an address until ctx ends, and then waits for running calls.
func runServer(ctx context.Context, addr string, secure *tls.Config, sc *screen, log *slog.Logger) error {
	srv := newServer("server", "tls://"+addr, secure, log)
	sc.servers, sc.tally = []*server{srv}, new(tally)
	if err := srv.start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	sc.say("serves at %s", strings.TrimPrefix(srv.address(), "tls://"))
	c := &controller{servers: sc.servers, tally: sc.tally}
	var both errgroup.Group
	both.Go(func() error { sc.follow(ctx); return nil })
	both.Go(func() error { c.rounds(ctx); return nil })
	both.Wait()
	sc.say("stops: what runs finishes")
	ending, done := context.WithTimeout(context.Background(), longest)
	defer done()
	err := srv.stop(ending)
	sc.summary()
	return err
}

// rounds repeatedly gives work to all connected agents. A failure is counted: agents come and go.
func (c *controller) rounds(until context.Context) {
	for rest(until, roundEach) == nil {
		var all errgroup.Group
		all.SetLimit(100)
		_, here := c.servers[0].doing()
		for _, agent := range here.agents() {
			all.Go(func() error { c.round(until, agent); return nil })
		}
		all.Wait()
	}
}

// runAgent works for the servers until ctx ends.
func runAgent(ctx context.Context, servers string, secure *tls.Config, sc *screen, log *slog.Logger) error {
	var urls []string
	for addr := range strings.SplitSeq(servers, ",") {
		urls = append(urls, "tls://"+strings.TrimSpace(addr))
	}
	sc.tally = new(tally)
	name, err := nameOf(secure)
	if err != nil {
		return err
	}
	a, err := newAgent(context.WithoutCancel(ctx), name, secure, urls, sc.tally, log)
	if err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() error { a.work(ctx); return nil })
	both.Go(func() error { a.tell(ctx, sc); return nil })
	both.Wait()
	ending, done := context.WithTimeout(context.Background(), longest)
	defer done()
	sc.say("stops: what runs finishes")
	return errors.Join(a.stop(ending), sc.tally.err())
}

// tell reports when servers come and go.
func (a *agent) tell(until context.Context, sc *screen) {
	var last []string
	for {
		var now []string
		for _, s := range a.servers.Servers() {
			state := "takes calls"
			switch {
			case s.Outage != nil && s.Outage.Why != nil:
				state = fmt.Sprintf("is away (%v)", s.Outage.Why)
			case !s.Ready:
				state = "is away"
			}
			now = append(now, fmt.Sprintf("%s %s", strings.TrimPrefix(s.URL, "tls://"), state))
		}
		if !slices.Equal(now, last) {
			sc.say("%s", strings.Join(now, ", "))
			last = now
		}
		if rest(until, redrawEach) != nil {
			return
		}
	}
}
