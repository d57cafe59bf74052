package limits_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/limits"
)

var steps = flag.Int("steps", 1_000_000, "random steps of the tests that compare with a model")

// A modelRoom is a Room in the simplest form: it knows the room of each holder, and adds that up
// whenever a sum is needed.
type modelRoom struct {
	rnd  *rand.Rand
	room *limits.Room
	plan limits.Plan

	holds   []*modelHold
	claims  []*modelClaim // for windows, granted and not yet opened
	opening []*modelClaim // in order of arrival, as asking
	asking  []*modelClaim
	allowed []int // bytes that were allowed, and not given back

	over excess // left by a Resize

	last string // the last step
	seen *events
}

// excess is the granted room beyond the existing room.
type excess struct{ windows, spare, fresh int }

// excess returns the current excess. It is zero, except after a Resize to less than the granted
// room.
func (m *modelRoom) excess(s sums) excess {
	promised, room := m.windows(s)
	return excess{max(promised-room, 0), max(s.spare-max(m.plan.Spare, 0), 0), max(s.fresh-max(m.plan.Spare/2+m.plan.Spare/8, 0), 0)}
}

// events counts the steps that had an effect, so that a schedule without some of them is noticed.
type events map[string]int

func (e *events) add(what string, ok bool) {
	if !ok {
		what += ", refused"
	}
	(*e)[what]++
}

type modelHold struct {
	limits.Hold
	fresh bool
}

// ofSpare returns the bytes of the spare room that h holds.
func (h *modelHold) ofSpare() int {
	if h.Source == limits.Spare {
		return int(h.Base + h.Extra)
	}
	return int(h.Extra)
}

type modelClaim struct {
	limits.Claim
	source  limits.Source // of the granted claim
	granted int           // how often Granted was called
}

// sums are the totals of the granted room.
type sums struct{ workers, callers, spare, fresh, large int }

func (m *modelRoom) sums() (s sums) {
	for _, h := range m.holds {
		switch h.Source {
		case limits.Workers:
			s.workers++
		case limits.Callers:
			s.callers++
		}
		s.spare += h.ofSpare()
		if h.fresh {
			s.fresh += h.ofSpare()
		}
	}
	for _, c := range m.claims {
		switch c.source {
		case limits.Callers:
			s.callers++
		case limits.Spare:
			s.spare += c.Bytes
			s.fresh += c.Bytes
		}
	}
	for _, n := range m.allowed {
		s.large += n
	}
	return s
}

// windows returns the bytes granted to streams, and the room for them.
func (m *modelRoom) windows(s sums) (promised, room int) {
	p := &m.plan
	return (s.workers+s.callers)*p.Window + s.spare, (p.Workers+p.Callers)*p.Window + p.Spare
}

// fits reports whether the room for all windows has place for another one.
func (m *modelRoom) fits(s sums) bool {
	promised, room := m.windows(s)
	return s.spare <= m.plan.Spare || promised+m.plan.Window <= room
}

// fail fails the test.
func (m *modelRoom) fail(format string, args ...any) {
	panic(fmt.Sprintf("after %s: %s\n%+v\n%+v", m.last, fmt.Sprintf(format, args...), m.sums(), m.plan))
}

// first returns the claim that is next in turn.
func first(line []*modelClaim) *modelClaim {
	if len(line) == 0 {
		return nil
	}
	// the first of equals
	return slices.MinFunc(line, func(a, b *modelClaim) int { return int(b.Priority) - int(a.Priority) })
}

// wouldOpen returns the source of a window for a stream of this side, or Elsewhere if there is
// none.
func (m *modelRoom) wouldOpen() limits.Source {
	s := m.sums()
	switch n := m.plan.Window; {
	case !m.fits(s):
		return limits.Elsewhere
	case s.callers < m.plan.Callers:
		return limits.Callers
	case s.spare+n <= m.plan.Spare && s.fresh+n <= m.plan.Spare/2+m.plan.Spare/8:
		return limits.Spare
	}
	return limits.Elsewhere
}

func (m *modelRoom) wouldAllow(bytes int) bool { return m.sums().large+bytes <= m.plan.Large }

// opened records that c got a window.
func (m *modelRoom) opened(c *modelClaim) {
	c.source = m.wouldOpen()
	m.claims = append(m.claims, c)
}

// granted compares the claims that were granted with the claims next in turn, one by one, and calls
// them.
func (m *modelRoom) granted(got []*limits.Claim) {
	limits.Grant(got)
	for _, g := range got {
		var c *modelClaim
		if c = first(m.opening); c != nil && &c.Claim == g {
			if m.wouldOpen() == limits.Elsewhere {
				m.fail("a window was granted for which there is no room")
			}
			m.opening = remove(m.opening, c)
			m.opened(c)
		} else if c = first(m.asking); c != nil && &c.Claim == g {
			if !m.wouldAllow(c.Bytes) {
				m.fail("%d bytes were granted for which there is no room", c.Bytes)
			}
			m.asking = remove(m.asking, c)
			m.allowed = append(m.allowed, c.Bytes)
		} else {
			m.fail("a claim was granted out of turn, at priority %d", g.Priority)
		}
		if c.granted != 1 {
			m.fail("a claim was granted %d times", c.granted)
		}
		m.seen.add("granted", true)
	}
}

func remove[T comparable](s []T, v T) []T {
	i := slices.Index(s, v)
	return slices.Delete(s, i, i+1)
}

func (m *modelRoom) claim(bytes int) *modelClaim {
	c := &modelClaim{Claim: limits.Claim{Priority: int8(m.rnd.IntN(3) - 1), Bytes: bytes}}
	c.Granted = func() { c.granted++ }
	return c
}

// hold returns one of the holds.
func (m *modelRoom) hold() *modelHold {
	if len(m.holds) == 0 {
		return new(modelHold) // without room
	}
	return m.holds[m.rnd.IntN(len(m.holds))]
}

// check is called after each step.
func (m *modelRoom) check() {
	s := m.sums()
	promised, room := m.windows(s)
	over := m.excess(s)
	switch {
	case over.windows > m.over.windows:
		m.fail("%d bytes are promised to streams, and there is room for %d", promised, room)
	case over.spare > m.over.spare:
		m.fail("windows have grown by %d bytes into other guarantees", over.spare)
	case over.fresh > m.over.fresh:
		m.fail("fresh windows hold %d bytes more than five eighths of the spare room", over.fresh)
	case s.workers > m.plan.Workers || s.callers > m.plan.Callers:
		m.fail("more windows are guaranteed than there are")
	case s.large > m.plan.Large:
		m.fail("%d bytes are promised to large Blocks, and there is room for %d", s.large, m.plan.Large)
	}
	m.over = over
	if c := first(m.opening); c != nil && m.wouldOpen() != limits.Elsewhere {
		m.fail("a stream waits that could be opened")
	}
	if c := first(m.asking); c != nil && m.wouldAllow(c.Bytes) {
		m.fail("a large Block of %d bytes waits that could be allowed", c.Bytes)
	}
	want := limits.Load{Windows: promised, Large: s.large, Opening: len(m.opening), Asking: len(m.asking)}
	if got := m.room.Load(); got != want {
		m.fail("the load is said to be %+v, and is %+v", got, want)
	}
}

// step does one random step.
func (m *modelRoom) step(resizes bool) {
	type choice struct {
		name   string
		weight int
		do     func()
	}
	few := max(1, 12-len(m.holds)/8)
	choices := [...]choice{
		{"Begin", few, m.begin}, {"Lend", few / 4, m.lend}, {"Open", few, m.open}, {"Opened", 8, m.opens}, {"Allow", 6, m.allow},
		{"Disallow", 5, m.disallow}, {"Withdraw", 4, m.withdraw}, {"Took", 8, m.took}, {"Grow", 16, m.grow}, {"Fit", 3, m.fit},
		{"Shrink", 4, m.shrink}, {"End", 8, m.end}, {"Resize", 0, m.resize},
	}
	if resizes && m.rnd.IntN(10) == 0 {
		choices[12].weight = 2
	}
	sum := 0
	for _, c := range choices {
		sum += c.weight
	}
	at := m.rnd.IntN(sum)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			m.last = c.name
			c.do()
			break
		}
	}
	m.check()
}

// drain ends everything. Each waiting claim is granted.
func (m *modelRoom) drain() {
	for len(m.holds)+len(m.claims)+len(m.allowed) > 0 {
		for len(m.claims) > 0 {
			m.last = "Opened at the end"
			m.opens()
			m.check()
		}
		for len(m.holds) > 0 {
			m.last = "End at the end"
			m.end()
			m.check()
		}
		for len(m.allowed) > 0 {
			m.last = "Disallow at the end"
			m.disallow()
			m.check()
		}
	}
	if load := m.room.Load(); load != (limits.Load{}) {
		m.fail("everything has ended, and the load is %+v", load)
	}
}

// TestRoom_Model has sessions with limits of all kinds take random steps. After each step it checks
// the granted room, its holders, and the waiting claims.
func TestRoom_Model(t *testing.T) {
	const each = 2000
	seen := events{}
	schedules := max(1, *steps/each)
	if race.Enabled { // they have one goroutine
		schedules = max(1, schedules/10)
	}
	for seed := range schedules {
		rnd := rand.New(rand.NewPCG(uint64(seed), 3))
		soft := limits.Amount{Bytes: 64*kib + upTo(rnd, 32*mib)}
		if rnd.IntN(3) == 0 {
			soft.Messages = 64 + upTo(rnd, 1000)
		}
		workers := 1 + rnd.IntN(min(40, limits.MostWorkers(soft.Bytes, max(soft.Messages, 64))))
		p := newPlan(t, soft, rnd.IntN(soft.Bytes/8), workers)
		m := &modelRoom{rnd: rnd, room: limits.NewRoom(&p), plan: p, seen: &seen, last: "nothing"}
		require.NotPanics(t, func() {
			m.check()
			for range each {
				m.step(seed%3 == 0)
			}
			m.drain()
		}, "session %d", seed)
	}
	for _, what := range []string{
		"begin", "begin, refused", "lend", "lend, refused", "open", "open, refused", "allow", "allow, refused", "withdraw", "withdraw, refused",
		"grow", "grow, refused", "shrink to its share", "fit", "fit, refused", "resize", "resize, refused", "granted",
	} {
		require.Positive(t, seen[what], "%s has never happened", what)
	}
	t.Log(seen)
}
