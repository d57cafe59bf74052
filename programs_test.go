package asterisque_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
)

var onlyProgram = flag.Uint64("program", 0, "run only the program that is drawn from this seed")

// TestPrograms_MakeProgress draws the actions of two applications, and plays them. Every action
// completes, in spite of sleepers. Grants never exceed their budget, the reader never blocks, and
// at the end no side holds anything.
func TestPrograms_MakeProgress(t *testing.T) {
	first, programs := uint64(501), uint64(500) // 827 once failed
	switch {
	case *onlyProgram > 0:
		playProgramOf(t, *onlyProgram)
		return
	case *testkit.Soak:
		first, programs = uint64(time.Now().UnixNano()), 100_000
	case race.Enabled || testing.Short():
		programs = 200
	}
	var next atomic.Uint64
	var sums outcomes
	t.Cleanup(func() { t.Logf("programs from seed %d on, with %v", first, &sums) })
	for i := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1); n <= programs && !t.Failed(); n = next.Add(1) {
				sums.add(playProgramOf(t, first+n-1))
			}
		})
	}
}

// playProgramOf plays the program that is drawn from a seed, and returns the outcomes of its calls.
func playProgramOf(t *testing.T, seed uint64) *outcomes {
	matter() // before the bubble
	late := time.AfterFunc(2*time.Minute, func() {
		fmt.Fprintf(os.Stderr, "the program of seed %d hangs: repeat it with -program %d\n", seed, seed)
		debug.SetTraceback("all")
		panic("a program hangs")
	})
	defer late.Stop()
	p := drawProgram(seed)
	if failure := p.failure(t, p.play); failure != "" {
		t.Fatal(failure)
	}
	return &p.outcomes
}

// failure runs play in a bubble, and returns the reason for which the program failed. A failed
// program may leave goroutines behind, which make the bubble panic: the panic is less specific.
func (p *program) failure(t *testing.T, play func()) (failure string) {
	defer func() {
		if left := recover(); left != nil {
			failure = fmt.Sprintf("%s\n\nthe bubble: %v", p.verdict, left)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		played := make(chan struct{})
		go func() {
			defer close(played)
			play()
		}()
		<-played
	})
	return p.verdict
}

// fatal ends the goroutine that plays the program, as one that has failed.
func (p *program) fatal(format string, args ...any) {
	p.verdict = fmt.Sprintf(format, args...) + p.report()
	runtime.Goexit()
}

// outcomes counts the outcomes of calls.
type outcomes struct {
	mu     sync.Mutex
	counts map[string]int // guarded by mu
}

func (o *outcomes) note(outcome string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = make(map[string]int)
	}
	o.counts[outcome] += n
}

func (o *outcomes) add(of *outcomes) {
	of.mu.Lock()
	defer of.mu.Unlock()
	for outcome, n := range of.counts {
		o.note(outcome, n)
	}
}

func (o *outcomes) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []string
	for outcome, n := range o.counts {
		list = append(list, fmt.Sprintf("%s: %d", outcome, n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// program is the actions of two applications over one session.
type program struct {
	habits
	seed    uint64 // these are fixed
	lots    lots   // until it is played
	sides   [2]side
	cable   cable
	threads []thread

	nodes    [2]*asterisque.Node // these are fixed while it is played
	sessions [2]*asterisque.Session
	conn     *asterisque.Connection // nil unless the session outlives its wires
	dialer   *progDialer
	wake     context.CancelFunc // ends all sleepers
	actors   sync.WaitGroup

	ticks    atomic.Int64 // progress of any call
	outcomes outcomes

	losing  string // target of the planted fault; fixed while it is played
	verdict string // reason of the failure; owned by the goroutine of play, as all below
	awaited bool   // a side has waited for its peer in vain
	// minutes for which a session has stayed at its soft limit, and ends
	stalled int

	mu       sync.Mutex
	errands  []*errand // guarded by mu, as all below
	sleepers [2]sleepers
	wrong    string // the first error
	lost     *way   // direction in which the planted fault has lost something
}

// thread makes one call after the other.
type thread struct {
	from  int
	begin time.Duration
	calls []uint64 // seeds
}

func drawProgram(seed uint64) *program {
	l := lotsOf(seed, 0)
	p := &program{seed: seed, lots: l, habits: l.habits(), cable: l.cable()}
	p.drawEnding(lotsOf(seed, 1<<32))
	p.sides[0], p.sides[1] = l.side(), l.side()
	for i := range p.sides {
		p.sides[i].out = l.outbound(p.sides[1-i].plan.Largest, p.posts)
	}
	if p.cuts > 0 && l.oneIn(2) {
		for range p.cuts {
			p.cable.lostAfter = append(p.cable.lostAfter, l.skewed(1, 256*kib))
		}
	}
	for i := range 2 * p.habits.threads {
		t := thread{from: i % 2, begin: l.upTo(20 * time.Millisecond)}
		for range l.within(1, p.habits.calls) {
			t.calls = append(t.calls, l.Uint64())
		}
		p.threads = append(p.threads, t)
	}
	return p
}

// play plays the program, in a bubble.
func (p *program) play() {
	p.connect()
	sleeping, wake := context.WithCancel(testkit.Background)
	p.wake = wake
	defer p.end()
	for _, th := range p.threads {
		p.actors.Go(func() { p.run(sleeping, th) })
	}
	p.disturb()
	if stalled := p.settle("all but sleepers have to end", func(e *errand) bool { return !e.sleepy }); stalled {
		p.outcomes.note("sessions stalled after their limits had become smaller", 1)
		return
	}
	wake()
	p.settle("all have to end", func(*errand) bool { return true })
	p.wantNothing()
	if p.ending != unending {
		return
	}
	p.probe()
	p.wantNothing()
}

// end ends all remaining activity.
func (p *program) end() {
	p.wake()
	if p.conn != nil {
		p.conn.Close()
	}
	p.nodes[0].Close()
	p.nodes[1].Close()
	p.actors.Wait()
}

// connect begins the session.
func (p *program) connect() {
	begun := [2]chan *asterisque.Session{make(chan *asterisque.Session, 1), make(chan *asterisque.Session, 1)}
	for i := range p.nodes {
		opts := append(p.sides[i].options(), asterisque.WithService(p.service(i)))
		opts = append(opts, asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(s *asterisque.Session) {
			select {
			case begun[i] <- s:
			default:
				if p.ending == unending {
					p.fail("there is another session")
				}
			}
		}}))
		opts = append(opts, asterisque.WithMaxPart(p.partLen))
		if p.intercepted {
			opts = append(opts, asterisque.WithOutboundInterceptors(testkit.Passes), asterisque.WithInboundInterceptors(testkit.Passes))
		}
		if p.resumes {
			opts = append(opts, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
		}
		p.nodes[i] = asterisque.NewNode(opts...)
	}
	p.dialer = &progDialer{cable: p.cable, to: p.nodes[1]}
	var err error
	if p.resumes {
		how := asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: p.dialer.dial}
		p.conn, err = p.nodes[0].Connect(testkit.Background, "", how)
	} else if w, failed := p.dialer.dial(testkit.Background); failed == nil {
		_, err = p.nodes[0].Attach(testkit.Background, w)
	} else {
		err = failed
	}
	if err != nil {
		p.fatal("the session does not begin: %v", err)
	}
	p.sessions = [2]*asterisque.Session{<-begun[0], <-begun[1]}
}

// caller returns the Caller of a call.
func (p *program) caller(e *errand) asterisque.Caller {
	if e.durable {
		return p.conn
	}
	return p.sessions[e.from]
}

// run makes the calls of a thread, and sleepers beside them.
func (p *program) run(sleeping context.Context, th thread) {
	fakeclock.Sleep(th.begin)
	for _, seed := range th.calls {
		e := p.outermost(th.from, lotsOf(seed, 0))
		if e.sleepy {
			p.actors.Go(func() { e.run(sleeping) })
		} else {
			e.run(testkit.Background)
		}
	}
}

// disturb schedules cuts, pauses, changes of limits, and the end of the session.
func (p *program) disturb() {
	var times [3][]time.Duration
	for i, n := range []int{p.cuts, p.pauses, p.resizes} {
		for range n {
			times[i] = append(times[i], p.lots.upTo(30*time.Millisecond))
		}
	}
	for _, d := range times[0] {
		away := time.Duration(0)
		if p.lots.oneIn(2) {
			away = p.lots.upTo(100 * time.Millisecond)
		}
		time.AfterFunc(d, func() {
			if away == 0 {
				p.dialer.cut()
			} else {
				p.dialer.away(away)
			}
		})
	}
	for _, d := range times[1] {
		s, length := p.sessions[p.lots.IntN(2)], p.lots.upTo(100*time.Millisecond)
		time.AfterFunc(d, func() {
			s.StopReading()
			fakeclock.Sleep(length)
			s.StartReading()
		})
	}
	for _, d := range times[2] {
		p.resize(d)
	}
	switch s := p.sessions[p.endOf]; p.ending {
	case drains:
		time.AfterFunc(p.endAt, func() { s.Shutdown(testkit.Background) })
	case closes:
		time.AfterFunc(p.endAt, func() { s.Close() })
	}
}

// resize changes the limits of a side after some time, and restores them later.
func (p *program) resize(after time.Duration) {
	i := p.lots.IntN(2)
	s, in, out := p.sessions[i], p.lots.inbound(), p.lots.outbound(p.sides[1-i].plan.Largest, p.posts)
	in.Hard.Bytes = 0
	set := func(in, out limits.Limits) {
		if err := s.SetLimits(in, out); err != nil {
			p.fail("limits do not fit: %v", err)
		}
		p.tick()
	}
	time.AfterFunc(after, func() {
		set(in, out)
		fakeclock.Sleep(50 * time.Millisecond)
		set(p.sides[i].in, p.sides[i].out)
	})
}

// tick records progress, and from time to time checks the invariants.
func (p *program) tick() {
	if p.ticks.Add(1)%8 == 0 {
		p.check()
	}
}

func (p *program) count(err error) {
	outcome := "returned"
	var a *asterisque.Abort
	if errors.As(err, &a) {
		outcome = fmt.Sprint(a.Code)
	}
	p.outcomes.note(outcome, 1)
}

// check fails the program if grants exceed their budget, or if a reader had to wait.
func (p *program) check() {
	if p.resizes > 0 {
		return
	}
	for i, s := range p.sessions {
		st := s.Stats()
		for name, share := range map[string]asterisque.Share{"Opens": st.Classes.Calls, "nested": st.Classes.Nested, "streams": st.Classes.Windows(), "large Blocks": st.Classes.Large} {
			if share.Promised > share.Room || share.Held > share.Promised {
				p.fail("side %d: %d bytes are promised to %s and %d held, of %d", i, share.Promised, name, share.Held, share.Room)
			}
		}
		if st.Stops > 0 {
			p.fail("the reader of side %d has stopped", i)
		}
	}
}

func (p *program) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(format, args...)
}

func (p *program) failLocked(format string, args ...any) {
	if p.wrong == "" {
		p.wrong = fmt.Sprintf(format, args...)
	}
}
