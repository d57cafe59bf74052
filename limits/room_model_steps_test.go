package limits_test

import (
	"slices"

	"github.com/asterisque-go/asterisque/limits"
)

// begin gives a handler its window.
func (m *modelRoom) begin() {
	s := m.sums()
	h := &modelHold{fresh: true}
	want := s.workers < m.plan.Workers && m.fits(s)
	if got := m.room.Begin(&h.Hold); got != want {
		m.fail("%d of %d workers have windows, and another got one: %v", s.workers, m.plan.Workers, got)
	}
	m.seen.add("begin", want)
	if want {
		m.holds = append(m.holds, h)
		m.checkFirst(h, limits.Workers, s, m.plan.Spare/2)
	} else if h.Hold != (limits.Hold{}) {
		m.fail("no window holds %+v", h)
	}
}

func (m *modelRoom) lend() {
	h, s := &modelHold{fresh: true}, m.sums()
	m.room.Lend(&h.Hold)
	m.holds = append(m.holds, h)
	m.checkFirst(h, limits.Elsewhere, s, m.plan.Spare/2)
	m.seen.add("lend", h.Extra > 0)
}

// checkFirst checks the first window of a stream, with most as the limit of all fresh ones.
func (m *modelRoom) checkFirst(h *modelHold, source limits.Source, before sums, most int) {
	extra := max(0, min(64<<10, m.plan.Spare/8))
	if before.spare >= m.plan.Spare-m.plan.Spare/2 || before.fresh+extra > most {
		extra = 0
	}
	if h.Source != source || int(h.Base) != m.plan.Window || int(h.Extra) != extra {
		m.fail("a stream begins with %+v from %d, and has %d bytes more than its guarantee", h.Hold, source, extra)
	}
}

func (m *modelRoom) open() {
	if len(m.opening) > 8 {
		return
	}
	c := m.claim(0)
	f, source := first(m.opening), m.wouldOpen()
	want := (f == nil || f.Priority < c.Priority) && source != limits.Elsewhere
	if got := m.room.Open(&c.Claim); got != want {
		m.fail("there is a window for a stream at priority %d: %v", c.Priority, want)
	}
	m.seen.add("open", want)
	if want {
		m.opened(c)
	} else {
		m.opening = append(m.opening, c)
	}
}

// opens stores the window of a stream of this side.
func (m *modelRoom) opens() {
	if len(m.claims) == 0 {
		return
	}
	c := m.claims[m.rnd.IntN(len(m.claims))]
	h, s := &modelHold{fresh: true}, m.sums()
	m.room.Opened(&c.Claim, &h.Hold)
	m.claims = remove(m.claims, c)
	m.holds = append(m.holds, h)
	m.checkFirst(h, c.source, s, m.plan.Spare/8)
}

func (m *modelRoom) allow() {
	if len(m.asking) > 8 {
		return
	}
	c := m.claim(1 + m.rnd.IntN(m.plan.Large))
	f := first(m.asking)
	want := (f == nil || f.Priority < c.Priority) && m.wouldAllow(c.Bytes)
	if got := m.room.Allow(&c.Claim); got != want {
		m.fail("there is room for a large Block of %d bytes at priority %d: %v", c.Bytes, c.Priority, want)
	}
	m.seen.add("allow", want)
	if want {
		m.allowed = append(m.allowed, c.Bytes)
	} else {
		m.asking = append(m.asking, c)
	}
}

func (m *modelRoom) disallow() {
	if len(m.allowed) == 0 {
		m.granted(m.room.Disallow(0))
		return
	}
	n := m.allowed[m.rnd.IntN(len(m.allowed))]
	m.allowed = remove(m.allowed, n)
	m.granted(m.room.Disallow(n))
}

// withdraw ends the wait of some claim, or finds that it is over.
func (m *modelRoom) withdraw() {
	all := slices.Concat(m.opening, m.asking, m.claims)
	if len(all) == 0 {
		return
	}
	c := all[m.rnd.IntN(len(all))]
	want := true
	switch {
	case slices.Contains(m.opening, c):
		m.opening = remove(m.opening, c)
	case slices.Contains(m.asking, c):
		m.asking = remove(m.asking, c)
	default:
		want = false
	}
	waited, granted := m.room.Withdraw(&c.Claim)
	if waited != want {
		m.fail("a claim was withdrawn that waits: %v", want)
	}
	m.seen.add("withdraw", want)
	m.granted(granted)
}

func (m *modelRoom) took() {
	h := m.hold()
	h.fresh = false
	m.granted(m.room.Took(&h.Hold))
}

// grow changes a window to a random size, or to its share.
func (m *modelRoom) grow() {
	h := m.hold()
	if h.Base == 0 {
		return
	}
	before, s := h.Hold, m.sums()
	least := uint64(m.rnd.IntN(int(h.Bytes()) + 1))
	want := h.Bytes()
	switch m.rnd.IntN(3) {
	case 0:
		want = min(2*want, 512<<10)
	case 1:
		want = uint64(m.rnd.IntN(m.plan.Room))
	}
	granted := m.room.Grow(&h.Hold, want, least)
	free := max(m.plan.Spare-s.spare, 0)
	most := (free + int(before.Extra)) / 8
	if free > m.plan.Spare/2 && want <= uint64(h.Base)+64<<10 {
		most = max(most, min(64<<10, m.plan.Spare/8))
	}
	switch grown := int(h.Extra) - int(before.Extra); {
	case h.Bytes() < least:
		m.fail("a window has shrunk to %d bytes, and %d were promised", h.Bytes(), least)
	case h.Bytes() > max(want, least, uint64(h.Base)):
		m.fail("a window has grown to %d bytes, and %d were wanted", h.Bytes(), want)
	case grown > 0 && int(h.Extra) > most:
		m.fail("a window has grown by %d bytes to %d, and its share is %d", grown, h.Extra, most)
	case grown < 0 && int(h.Extra) < min(most, int(want)-int(h.Base)):
		m.fail("a window has shrunk to %d bytes, and its share of %d is free", h.Extra, most)
	case grown == 0 && !h.fresh && want > h.Bytes() && most > int(h.Extra):
		m.fail("a window has not grown, and its share of %d is free", most)
	case h.Base != before.Base || h.Source != before.Source:
		m.fail("a window has grown from %+v to %+v", before, h.Hold)
	case grown > 0:
		m.seen.add("grow", true)
	case grown < 0:
		m.seen.add("shrink to its share", true)
	default:
		m.seen.add("grow", false)
	}
	m.granted(granted)
}

func (m *modelRoom) fit() {
	h := m.hold()
	if h.Base == 0 {
		return
	}
	before, s := h.Hold, m.sums()
	n := m.rnd.IntN(m.plan.Large)
	want := s.spare+n <= m.plan.Spare && (!h.fresh || s.fresh+n <= m.plan.Spare/2) || n == 0
	if got := m.room.Fit(&h.Hold, h.Bytes()+uint64(n)); got != want {
		m.fail("%d bytes fit into the spare room: %v", n, want)
	}
	if want {
		before.Extra += uint32(n)
	}
	if h.Hold != before {
		m.fail("a window is %+v and should be %+v", h.Hold, before)
	}
	m.seen.add("fit", want)
}

func (m *modelRoom) shrink() {
	h := m.hold()
	least := uint64(m.rnd.IntN(int(h.Bytes()) + 1))
	want := min(h.Bytes(), max(least, uint64(h.Base)))
	granted := m.room.Shrink(&h.Hold, least)
	if h.Bytes() != want {
		m.fail("a window has shrunk to %d bytes and not to %d", h.Bytes(), want)
	}
	m.granted(granted)
}

func (m *modelRoom) end() {
	h := m.hold()
	if h.Base > 0 {
		m.holds = remove(m.holds, h)
	}
	granted := m.room.End(&h.Hold)
	if h.Hold != (limits.Hold{}) {
		m.fail("an ended stream holds %+v", h.Hold)
	}
	m.granted(granted)
}

func (m *modelRoom) resize() {
	bytes := m.rnd.IntN(2 * m.plan.Room)
	if m.rnd.IntN(4) == 0 {
		bytes = 0
	}
	old := m.plan
	p, granted := m.room.Resize(bytes)
	if m.plan = *p; *p != m.room.Plan() {
		m.fail("the plan is another one")
	}
	if sum := p.Opens + p.Nested + p.NestedOwn + p.Large + (p.Workers+p.Callers)*p.Window + p.Spare; sum != p.Room || p.Room < bytes {
		m.fail("the shares are %d bytes, and %d were to be divided", sum, bytes)
	}
	old.Room, old.Opens, old.Spare = p.Room, p.Opens, p.Spare
	if *p != old {
		m.fail("granted credit does not stand: it was %+v", old)
	}
	m.over = m.excess(m.sums())
	m.seen.add("resize", m.over == excess{})
	m.granted(granted)
}
