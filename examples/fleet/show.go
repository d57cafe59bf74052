package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque/cluster"
)

// show is all on this machine: NATS, the replicas, the agents, and what goes wrong with them.
type show struct {
	o      *options // these are fixed
	screen *screen
	fail   func(error) // ends the show: a process has ended by itself

	servers  servers // these change with the events, which come one after the other
	replicas []*process
	agents   *process
	control  *control
}

// startTime is how long the start of a process may take.
const startTime = 30 * time.Second

// runShow runs the show until its time is over, or ctx ends, and tells what has become of all
// calls. The processes end with it.
func runShow(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	// an interrupt lets all come to a good end, the end of a process does not
	life, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(life, stop)()
	s := &show{o: o, screen: sc, fail: func(err error) { fail(err) }}
	err := s.run(ctx, life, log)
	if failed := context.Cause(life); failed != nil {
		err = failed
	}
	return errors.Join(err, s.close())
}

func (s *show) run(ctx, life context.Context, log *slog.Logger) error {
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var err error
	if s.servers, s.o.nats, err = startServers(starting, s.o, s.fail); err != nil {
		return err
	}
	s.screen.say("%s", s.servers)
	if err := s.join(starting, log); err != nil {
		return err
	}
	stop := s.control.show(life, s.screen)
	if err = s.start(starting); err == nil {
		err = s.direct(ctx, life)
	}
	stop()
	if life.Err() != nil || s.agents == nil {
		return err
	}
	s.screen.say("the audit: all stop calling, and their journals are compared")
	return errors.Join(err, s.control.audit(life, s.screen))
}

// start starts the processes, and waits until all call each other.
func (s *show) start(ctx context.Context) error {
	s.replicas = make([]*process, s.o.replicas)
	var all errgroup.Group
	for n := range s.replicas {
		all.Go(func() error { return s.startReplica(ctx, n) })
	}
	all.Go(func() (err error) {
		s.agents, err = s.part(ctx, "agents", "agent", "-agents", fmt.Sprint(s.o.agents))
		return err
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if _, err := s.control.await(ctx, s.o.replicas, s.o.agents); err != nil {
		return err
	}
	s.screen.say("%d replicas and %d agents call each other by name, in %d processes", s.o.replicas, s.o.agents, s.o.replicas+1)
	return nil
}

// join joins the cluster with the control. Three servers do not answer until they have met.
func (s *show) join(ctx context.Context, log *slog.Logger) (err error) {
	for {
		s.control, err = newControl(ctx, s.o, log)
		if err == nil || !isAny(err, context.DeadlineExceeded, cluster.ErrNoJetStream) || rest(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// part starts a process of the fleet.
func (s *show) part(ctx context.Context, part, id string, flags ...string) (*process, error) {
	return startProcess(ctx, id, s.fail, append([]string{
		"-part", part, "-id", id, "-dir", s.o.dir, "-nats", s.o.nats, "-servers", fmt.Sprint(s.o.servers),
	}, flags...)...)
}

func (s *show) startReplica(ctx context.Context, n int) (err error) {
	s.replicas[n], err = s.part(ctx, "replica", ordersName+"-"+string(rune('a'+n)))
	return err
}

// direct is the order of events: a while of work, two troubles, and a while again after each.
func (s *show) direct(ctx, life context.Context) error {
	end := time.Now().Add(s.o.howLong)
	kill := trouble{
		begins: "kill -9 of " + s.replicas[1].name, ends: s.replicas[1].name + " is started again", lasts: s.o.howLong * 3 / 20,
		begin: func(context.Context) error { s.replicas[1].kill(); return nil },
		mend:  func(ctx context.Context) error { return s.startReplica(ctx, 1) },
	}
	for _, t := range []trouble{kill, s.servers.trouble(min(s.o.howLong/10, 2*time.Second))} {
		if err := rest(ctx, s.o.howLong/4); err != nil {
			return err
		}
		if err := s.cause(ctx, life, t); err != nil {
			return err
		}
	}
	return rest(ctx, time.Until(end))
}

// cause causes trouble, mends it, also after an interrupt, and waits until all is well.
func (s *show) cause(ctx, life context.Context, t trouble) error {
	s.screen.say("%s", t.begins)
	if err := t.begin(life); err != nil {
		return err
	}
	interrupted := rest(ctx, t.lasts)
	starting, cancel := context.WithTimeout(life, startTime)
	defer cancel()
	s.screen.say("%s", t.ends)
	if err := t.mend(starting); err != nil {
		return err
	}
	took, err := s.control.await(life, s.o.replicas, s.o.agents)
	if err != nil {
		return err
	}
	s.screen.say("all call each other again, after %s", short(took))
	return interrupted
}

// close ends all that is there: those who call first.
func (s *show) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), mostEnd)
	defer cancel()
	var callers errgroup.Group
	for _, p := range append([]*process{s.agents}, s.replicas...) {
		if p != nil {
			callers.Go(func() error { return p.stop(ctx) })
		}
	}
	err := callers.Wait()
	if s.control != nil {
		s.control.close()
	}
	if s.servers != nil {
		err = errors.Join(err, s.servers.close(ctx))
	}
	return err
}
