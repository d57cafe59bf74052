package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque/cluster"
)

// show has all parts on this machine: NATS, the replicas, the agents, and their faults.
type show struct {
	o      *options // these are fixed
	screen *screen
	fail   func(error) // ends the show: a process has ended unexpectedly

	servers  servers // these change with the events, which are sequential
	doors    *doors
	replicas []*process
	exchange *process
	agents   *process
	control  *control
}

// startTime is the time limit for the start of a process.
const startTime = 2 * time.Minute

// runShow runs the show until its time is over, or ctx ends, and prints the outcome of all calls.
// The processes end with it.
func runShow(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	// an interrupt ends everything gracefully, the end of a process does not
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
	if err := s.openDoors(); err != nil {
		return err
	}
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
	return errors.Join(err, s.control.audit(life, s.screen, s.doors.wires.count()))
}

// openDoors opens the doors for all wires that are cut later.
func (s *show) openDoors() (err error) {
	s.doors, err = openDoors(s.o.replicas)
	if err == nil {
		s.o.exchange, s.o.door, s.o.secret = s.doors.exchange.url(), s.doors.all.url(), rand.Text()
	}
	return err
}

// start starts the processes, and waits until all call each other.
func (s *show) start(ctx context.Context) error {
	s.replicas = make([]*process, s.o.replicas)
	var all errgroup.Group
	for n := range s.replicas {
		all.Go(func() error { return s.startReplica(ctx, n) })
	}
	all.Go(func() error { return s.startExchange(ctx) })
	all.Go(func() error { return s.startAgents(ctx) })
	if err := all.Wait(); err != nil {
		return err
	}
	if _, err := s.control.await(ctx, s.o.wanted()); err != nil {
		return err
	}
	outside, atDoor := s.o.ways()
	s.screen.say("%d replicas and %d agents call each other by name, in %d processes", s.o.replicas, s.o.agents, s.o.replicas+2)
	s.screen.say("%d of these agents can only dial out, to an exchange, and %d reach the replicas at one address", outside, atDoor)
	return nil
}

// join joins the cluster with the control. Three servers do not answer until they have connected to
// each other.
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
		"-part", part, "-id", id, "-nats", s.o.nats, "-servers", fmt.Sprint(s.o.servers),
	}, flags...)...)
}

func (s *show) startReplica(ctx context.Context, n int) (err error) {
	s.replicas[n], err = s.part(ctx, "replica", ordersName+"-"+string(rune('a'+n)), "-dir", s.o.dir,
		"-listen", s.doors.behind[n], "-at", s.doors.replicas[n].addr)
	return err
}

func (s *show) startExchange(ctx context.Context) (err error) {
	s.exchange, err = s.part(ctx, "exchange", "exchange", "-secret", s.o.secret, "-listen", s.doors.behind[s.o.replicas])
	return err
}

func (s *show) startAgents(ctx context.Context) (err error) {
	s.agents, err = s.part(ctx, "agents", "agent", "-dir", s.o.dir, "-agents", fmt.Sprint(s.o.agents),
		"-exchange", s.o.exchange, "-secret", s.o.secret, "-door", s.o.door)
	return err
}

// kill returns the trouble in which a replica is killed and its door is shut.
func (s *show) kill(n int, lasts time.Duration) trouble {
	name, door := s.replicas[n].name, s.doors.replicas[n]
	return trouble{
		begins: "kill -9 of " + name, ends: name + " is started again", lasts: lasts,
		begin: func(context.Context) error { s.replicas[n].kill(); return door.shut() },
		mend:  func(ctx context.Context) error { return errors.Join(door.open(), s.startReplica(ctx, n)) },
	}
}

// direct is the order of events: work before each trouble, first one by one, then all at the same
// time.
func (s *show) direct(ctx, life context.Context) error {
	begin, tenth := time.Now(), s.o.howLong/10
	away := min(tenth, 2*time.Second)
	for _, t := range []trouble{
		s.kill(1, s.o.howLong*3/20),
		s.servers.trouble(away),
		s.doors.wires.trouble(s.o.howLong/2, s.kill(s.o.replicas-1, tenth), s.servers.trouble(away)),
	} {
		if err := rest(ctx, s.o.howLong/20); err != nil {
			return err
		}
		if err := s.cause(ctx, life, t); err != nil {
			return err
		}
	}
	return rest(ctx, time.Until(begin.Add(s.o.howLong)))
}

// cause causes trouble, repairs it, and waits for a complete recovery.
func (s *show) cause(ctx, life context.Context, t trouble) error {
	interrupted, err := s.endure(ctx, life, t)
	if err != nil {
		return err
	}
	took, err := s.control.await(life, s.o.wanted())
	if err != nil {
		return err
	}
	s.screen.say("all call each other again, over %d sessions with replicas, after %s", s.o.wanted().sessions, short(took))
	return interrupted
}

// endure causes trouble, with further troubles meanwhile, and repairs it, also after an interrupt.
func (s *show) endure(ctx, life context.Context, t trouble) (interrupted, err error) {
	s.screen.say("%s", t.begins)
	if err := t.begin(life); err != nil {
		return nil, err
	}
	interrupted = rest(ctx, t.pause())
	for _, m := range t.meanwhile {
		if interrupted != nil {
			break
		}
		if interrupted, err = s.endure(ctx, life, m); err != nil {
			break
		}
		interrupted = rest(ctx, t.pause())
	}
	starting, cancel := context.WithTimeout(life, startTime)
	defer cancel()
	s.screen.say("%s", t.ends)
	return interrupted, errors.Join(err, t.mend(starting))
}

// close ends all parts, in an order in which sessions end gracefully, instead of waiting for a
// wire.
func (s *show) close() (err error) {
	for _, some := range [][]*process{{s.agents}, s.replicas, {s.exchange}} {
		err = errors.Join(err, stopAll(some))
	}
	err = errors.Join(err, s.doors.close())
	if s.control != nil {
		s.control.close()
	}
	if s.servers != nil {
		ctx, cancel := context.WithTimeout(context.Background(), mostEnd)
		defer cancel()
		err = errors.Join(err, s.servers.close(ctx))
	}
	return err
}

// stopAll stops processes at the same time.
func stopAll(some []*process) error {
	ctx, cancel := context.WithTimeout(context.Background(), mostEnd+time.Second)
	defer cancel()
	var stopping errgroup.Group
	for _, p := range some {
		if p != nil {
			stopping.Go(func() error { return p.stop(ctx) })
		}
	}
	return stopping.Wait()
}
