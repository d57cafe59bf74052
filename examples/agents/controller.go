package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque"
)

// controller gives work to agents, through any of its servers.
type controller struct {
	servers []*server // these are fixed
	tally   *tally
}

// reach is the Caller for one agent, through any server.
type reach struct {
	controller *controller
	agent      string
	stream     *server // has the last stream; nil if there is none
}

func (c *controller) reach(agent string) *reach { return &reach{controller: c, agent: agent} }

// leave counts the last stream as over, if there is one.
func (r *reach) leave() {
	if r.stream != nil {
		r.stream.streams.Add(-1)
		r.stream = nil
	}
}

// Invoke implements [asterisque.Caller]: it makes the call on the session that the agent has made
// to one of the servers. A call that a draining server has refused certainly did not run, and is
// made through another one.
func (r *reach) Invoke(ctx context.Context, call *asterisque.Call) error {
	servers := r.controller.servers
	for first := rand.IntN(len(servers)); ; first++ {
		s := servers[first%len(servers)]
		if session := s.session(r.agent); session != nil {
			s.called.Add(1)
			err := session.Invoke(ctx, call)
			if err == nil || ctx.Err() != nil || !goesOn(err) {
				if err == nil && call.Blocks() {
					s.streams.Add(1) // until leave
					r.stream = s
				}
				return err
			}
			r.controller.tally.elsewhere.Add(1)
		}
		if err := rest(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// employ gives work to an agent until it is over.
func (c *controller) employ(until context.Context, agent string) {
	for until.Err() == nil {
		c.round(until, agent)
		if rest(until, 50*time.Millisecond+rand.N(100*time.Millisecond)) != nil {
			return
		}
	}
}

// round asks an agent for its description, runs commands on it, and cancels one of them.
func (c *controller) round(until context.Context, agent string) {
	ctx, done := patience(until)
	defer done()
	m, err := describe.Call(ctx, c.reach(agent), struct{}{})
	if err == nil && m.Agent != agent {
		err = errors.New(m.Agent + " has answered in place of " + agent)
	}
	c.tally.note(&c.tally.described, agent+" describes itself", err)
	for _, what := range []command{{Name: "env"}, {Name: "count", Lines: 10 + rand.IntN(20)}} {
		_, err = c.execute(ctx, agent, what, nil)
		c.tally.note(&c.tally.runs, agent+" runs "+what.Name, err)
	}
	c.tally.note(&c.tally.cancelled, "a command of "+agent+" is cancelled", c.cancelOne(ctx, agent))
}

// cancelOne begins a command that would take long, and cancels it after a few lines.
func (c *controller) cancelOne(ctx context.Context, agent string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := c.execute(ctx, agent, command{Name: "count", Lines: mostLines}, func(n int) {
		if n == 3 {
			cancel()
		}
	})
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case err == nil:
		return errors.New("a command that was cancelled came to its end")
	}
	return err
}

// watch runs the watch command on an agent until it is over, through one server after the other.
func (c *controller) watch(until context.Context, agent string) {
	for until.Err() == nil {
		_, err := c.execute(until, agent, command{Name: "watch"}, nil)
		switch {
		case until.Err() != nil:
			return
		case err != nil:
			c.tally.fail("watching "+agent, err)
		default:
			c.tally.moved.Add(1) // its server drains
		}
	}
}

// execute runs a command on an agent, and follows it. A command that a server has refused is run
// through another one.
func (c *controller) execute(ctx context.Context, agent string, what command, each func(n int)) (int, error) {
	for {
		c.tally.streams.Add(1)
		r := c.reach(agent)
		n, err := follow(ctx, func(ctx context.Context) (lines, error) { return execute.Open(ctx, r, what) }, each)
		r.leave()
		if err == nil || ctx.Err() != nil || !goesOn(err) {
			return n, err
		}
		c.tally.elsewhere.Add(1)
	}
}
