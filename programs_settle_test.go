package asterisque_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
)

// round is longer than any wait of a program by itself.
const round = 3 * time.Second

// mostStalled is how many minutes a session may stay at a soft limit that was reduced below its
// grants. In each ping interval one frame passes, so that the application may take a message, and
// the session need not end within one minute.
const mostStalled = 60

// settle waits until the calls for which of returns true have ended, for both sides, and fails when
// no call makes progress. If limits change, a session may reach a soft limit that was reduced below
// its grants, and may end because of that.
func (p *program) settle(demand string, of func(*errand) bool) (stalled bool) {
	for {
		before := p.ticks.Load()
		fakeclock.Sleep(round)
		synctest.Wait()
		p.check()
		p.wantRight()
		left := p.left(of)
		switch {
		case left == 0:
			return p.stalled > 0
		case p.ticks.Load() > before:
		case p.ending != unending && p.cuts > 0 && !p.awaited:
			p.awaited = true
			fakeclock.Sleep(time.Minute) // a side waits for a lost peer
			p.ticks.Add(1)
		case p.resizes > 0 && p.stalled < mostStalled && (p.atSoftLimit(0) || p.atSoftLimit(1)):
			p.stalled++
			fakeclock.Sleep(time.Minute)
			p.ticks.Add(1)
		default:
			p.fatal("%s, and %d calls stand still", demand, left)
		}
	}
}

func (p *program) atSoftLimit(side int) bool {
	return p.sessions[side].Stats().InboundState >= limits.Soft
}

// wantRight fails if an error was recorded.
func (p *program) wantRight() {
	p.mu.Lock()
	wrong := p.wrong
	p.mu.Unlock()
	for i, s := range p.sessions {
		if wrong == "" && s.Err() != nil && p.stalled == 0 && p.ending == unending {
			wrong = fmt.Sprintf("the session of side %d has ended: %v", i, s.Err())
		}
	}
	if wrong != "" {
		p.fatal("%s", wrong)
	}
}

// left returns the number of calls that have to end, and have not.
func (p *program) left(of func(*errand) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := 0
	for _, th := range p.threads {
		want += len(th.calls)
	}
	for _, e := range p.errands {
		if e.within == nil {
			want--
		}
		if of(e) && !e.over() {
			n++
		}
	}
	return n + max(want, 0)
}

func (e *errand) over() bool {
	callee := e.callee.String()
	return e.caller.String() == "is over 0" && (callee == " 0" || callee == "has returned 0")
}

// wantNothing fails if a side holds anything.
func (p *program) wantNothing() {
	fakeclock.Sleep(round)
	if p.ending != unending && p.cuts > 0 {
		fakeclock.Sleep(time.Minute) // a side waits for a lost peer
	}
	synctest.Wait()
	p.wantRight()
	for i, s := range p.sessions {
		if s.Err() != nil { // messages that were being written at the end still count
			if st := s.Stats(); st.Pipes+st.Waiting+st.Running > 0 {
				p.fatal("the session has ended, and side %d holds %d pipes", i, st.Pipes)
			}
			continue
		}
		if left := testkit.LeftOf(s.Stats()); left != "" {
			p.fatal("all calls are over, and side %d holds %s", i, left)
		}
	}
}

// probe makes a few final calls that need the whole budget, so that a lost part of it is detected.
func (p *program) probe() {
	for from := range p.sides {
		for n := range 3 {
			e := p.errand(from, nil, lotsOf(p.seed, uint64(n+2)))
			e.function, e.priority, e.stream = calledAsleep, 0, n == 1
			e.params, e.result = min(p.sides[1-from].plan.Largest, 256*kib), min(p.sides[from].plan.Largest, 256*kib)
			e.up.draw(e, 1-from)
			e.down.draw(e, from)
			e.up.plain(e.params)
			e.down.plain(e.result)
			if n == 2 {
				e.deepest, e.params, e.result = 12, 100, 100
				e.kids, e.seeds = 1, []uint64{p.seed}
			}
			p.actors.Go(func() { e.run(testkit.Background) })
		}
	}
	p.settle("the last calls have to end", func(*errand) bool { return true })
}

// plain makes the direction a single Block of a size.
func (w *way) plain(size int) {
	*w = way{e: w.e, lots: w.lots, blocks: 1, most: size, stopAt: -1, pauseAt: -1, sleepAt: -1, sendless: -1}
}

// report describes the state of the program.
func (p *program) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nrepeat it with: go test -run %s -program %d -count 100 .\n%v", "TestPrograms", p.seed, p)
	for i, s := range p.sessions {
		if s == nil {
			continue
		}
		stats, _ := json.Marshal(s.Stats())
		fmt.Fprintf(&b, "\nside %d: ended: %v; %s", i, s.Err(), stats)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := 0
	for _, e := range p.errands {
		if e.over() || shown == 40 {
			continue
		}
		shown++
		fmt.Fprintf(&b, "\n%v\n   the caller %v, the callee %v", e, &e.caller, &e.callee)
		for _, w := range []*way{&e.up, &e.down} {
			if e.stream {
				fmt.Fprintf(&b, "\n   %v: the sender %v, the receiver %v", w, &w.sender, &w.receiver)
			}
		}
	}
	if *onlyProgram > 0 {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(&b, "\n\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return b.String()
}

func (p *program) String() string {
	return fmt.Sprintf("%+v\n%v, room %d, pieces of %d, each %v, lost after %v, delay %v\nside 0: %v\nside 1: %v", p.habits,
		p.cable.kind, p.cable.room, p.cable.piece, p.cable.pause, p.cable.lostAfter, p.cable.delay, p.sides[0], p.sides[1])
}

func (e *errand) String() string {
	within := ""
	if e.within != nil {
		within = fmt.Sprintf(" within %d", e.within.number)
	}
	if e.sleepy {
		within += ", sleepy"
	}
	return fmt.Sprintf("call %d of function %d by side %d%s (priority %d, %d bytes, %d back)", e.number, e.function, e.from, within, e.priority, e.params, e.result)
}

// Faults of the library that a test plants in a program.
const (
	aBlock  = "a Block" // is not given to the application
	theRest = "the rest of the Blocks"
)

// loses reports whether the planted fault loses something of this direction now: once in a program,
// in a direction without an excuse.
func (w *way) loses(what string) bool {
	p := w.e.p
	if p.losing != what || w.mayBeLeft() || w.e.mayBeGivenUp() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost == nil {
		p.lost = w
		return true
	}
	return false
}

// TestPrograms_PlantedLoss plays programs that lose Blocks. Each of them has to be detected.
func TestPrograms_PlantedLoss(t *testing.T) {
	matter() // before the bubbles
	for what, sees := range map[string]string{aBlock: "a Block of", theRest: "its Blocks ended early"} {
		t.Run(what, func(t *testing.T) {
			var lost []string // verdicts of programs that have lost something
			for seed := uint64(1); len(lost) < 10; seed++ {
				require.Less(t, seed, uint64(200), "a loss has no place in these programs")
				p := drawProgram(seed)
				if p.ending != unending {
					continue
				}
				p.losing = what
				verdict := p.failure(t, p.play)
				if p.lost == nil {
					require.Empty(t, verdict)
					continue
				}
				require.NotEmpty(t, verdict, "program %d loses %s, and nothing sees it", seed, what)
				lost = append(lost, verdict)
			}
			require.Contains(t, strings.Join(lost, ""), sees)
		})
	}
}

// TestPrograms_GoroutinesLeft fails a program that cannot end. Its bubble panics, and the test
// still reports the failure. The remaining goroutine ends with a process.
func TestPrograms_GoroutinesLeft(t *testing.T) {
	matter() // before the bubble
	const inside = "ASTERISQUE_PROGRAM_THAT_FAILS"
	if os.Getenv(inside) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		child := exec.Command(self, "-test.run", "^"+t.Name()+"$")
		child.Env = append(os.Environ(), inside+"=1")
		out, err := child.CombinedOutput()
		require.NoErrorf(t, err, "%s", out)
		return
	}
	p := drawProgram(1)
	p.wrong = "a planted failure"
	verdict := p.failure(t, func() {
		p.actors.Go(func() { select {} })
		p.play()
	})
	require.Contains(t, verdict, "a planted failure")
	require.Contains(t, verdict, "-program 1 ")
	require.Contains(t, verdict, "deadlock")
	os.Exit(0) // with the remaining goroutine
}

func TestMain(m *testing.M) { testkit.Main(m) }
