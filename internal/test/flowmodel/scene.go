package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// scene is the behaviour of the applications of a session.
type scene struct {
	lowest                int // priority: 0 or -1, and then the highest is 1
	blocks                int // of a direction
	nestEvery, sleepEvery int
	allAsleep             bool   // sleepers may hold all windows of callers
	crowd                 bool   // many callers, large Blocks
	heavy                 bool   // many calls with large parameters
	lazy                  bool   // all receivers are slow
	slowness              int    // how long the others wait for slow receivers
	resizeEvery           int    // steps after which limits change; 0: never
	patience              [2]int // looks after which a Send, or a Receive, is given up
	largestWindow         int
	speeds                [2][actKinds]uint8 // a step is taken once in this number of times, by end
}

// newSession draws all random properties of a session but its schedule.
func newSession(broken Broken, seed uint64) *session {
	s := &session{broken: broken, random: random(seed * 0x9e3779b97f4a7c15)}
	r := &s.random
	s.crowd = r.oneIn(6)
	s.lowest = -r.below(2)
	s.blocks = r.within(1, 8)
	s.slowness = 1 << r.below(4)
	s.patience = [2]int{8 << r.below(5), 8 << r.below(5)}
	s.heavy, s.lazy = r.oneIn(4), r.oneIn(6)
	s.nestEvery = r.within(1, 6)
	s.sleepEvery = 1 << 30
	if r.oneIn(2) {
		s.sleepEvery = r.within(1, 6)
		s.allAsleep = r.oneIn(4)
	}
	for i := range s.ends {
		s.ends[i].index = i
		s.ends[i].plan = s.drawPlan()
		if s.broken.NoLarge {
			s.ends[i].plan.Large = 0
		}
	}
	s.largestWindow = r.within(0, 128<<10)
	for i := range s.ends {
		s.largestWindow = max(s.largestWindow, s.ends[i].plan.Window)
	}
	for i := range s.ends {
		s.drawEnd(i)
		s.drawThreads(i)
	}
	if r.oneIn(4) {
		s.resizeEvery = 16 << r.below(8)
	}
	return s
}

// drawPlan draws numbers until they are valid together.
func (s *session) drawPlan() flow.Plan {
	r := &s.random
	for {
		soft := limits.Amount{Bytes: r.within(64<<10, 64<<10<<r.below(4))}
		if r.oneIn(2) {
			soft.Messages = r.within(64, 64<<r.below(5))
		}
		largest := soft.Bytes / 8
		if r.oneIn(2) {
			largest = r.within(1<<10, soft.Bytes/8)
		}
		p, err := flow.NewPlan(soft, largest, r.within(1, 1<<r.below(6)))
		if err == nil && (!s.crowd || p.Workers >= 4 && p.Callers >= 4) {
			return p
		}
	}
}

// drawEnd sets up one end. The plan of its peer is known.
func (s *session) drawEnd(i int) {
	r, e, peer := &s.random, &s.ends[i], &s.ends[1-i].plan
	p := &e.plan
	e.room = flow.NewBudget(p)
	e.opens = flow.NewOpens(p)
	e.credit.init(peer)
	e.extra.limit = peer.Extra
	if r.oneIn(4) {
		e.mostQueued = r.within(1, 8)
	}
	messages := p.Room / p.Overhead
	e.inbound = flow.NewCounter(checked(limits.Limits{
		Soft: limits.Amount{Messages: messages, Bytes: p.Room},
		Hard: limits.Amount{Messages: 4 * messages, Bytes: 4 * p.Room},
	}), nil)
	out := r.within(p.Room/16, p.Room)
	e.outbound.init(checked(limits.Limits{
		Soft: limits.Amount{Messages: r.within(4, messages), Bytes: out},
		Hard: limits.Amount{Bytes: 4*out + 2*peer.Largest + 64<<10},
	}), float64(r.below(2))*0.05)
	s.wires[i].room = r.within(64, 64<<r.below(12))
	for k := range s.speeds[i] {
		s.speeds[i][k] = 1 << r.below(5)
	}
	for k := actWrite; k <= actGrant; k++ {
		s.add(actor{kind: k, end: uint8(i)})
	}
}

func checked(l limits.Limits) *limits.Limits {
	l, err := l.Check()
	if err != nil {
		panic(err)
	}
	return &l
}

func (s *session) drawThreads(i int) {
	r := &s.random
	callers, calls := r.below(1+r.within(1, 4<<r.below(4))), r.within(1, 5)
	if s.crowd {
		callers, calls = r.within(8, 40), 2
	}
	for range callers {
		s.add(actor{kind: actThread, end: uint8(i), t: &thread{left: calls}})
	}
}

// rootCall draws a call that is not nested.
func (s *session) rootCall(from int) *call {
	r := &s.random
	c := s.newCall(from)
	if r.oneIn(s.nestEvery) {
		c.deepest = r.within(1, 12)
		if r.oneIn(16) {
			c.deepest = 70 // too deep
		}
	}
	if r.oneIn(12) {
		c.nature = nature(1 + r.below(2))
		c.stream = false
	}
	s.shape(c)
	if c.nature == ordinary && s.maySleep(c) {
		c.sleepy = true
		s.putToSleep(c)
	}
	return c
}

// nestedCall draws a call of the handler of parent.
func (s *session) nestedCall(parent *call) *call {
	c := s.newCall(parent.to())
	c.parent, c.nested, c.depth = parent, !s.broken.NestedWait, parent.depth+1
	c.stream = c.stream && s.random.oneIn(2)
	s.counts.Deepest = max(s.counts.Deepest, c.depth)
	c.deepest, c.sleepy = parent.deepest, parent.sleepy
	s.shape(c)
	if c.sleepy {
		s.putToSleep(c)
	}
	up := &parent.up
	if c.stream && parent.stream && !parent.first && up.sink == nil && s.random.oneIn(2) {
		up.feeds(&c.up)
	}
	return c
}

func (s *session) newCall(from int) *call {
	s.counts.Calls++
	c := &call{id: s.counts.Calls, from: from}
	c.stream = !s.random.oneIn(3)
	c.priority = priority.Priority(s.lowest + s.random.below(1-2*s.lowest))
	c.flow[0].Priority, c.flow[1].Priority = c.priority, c.priority
	return c
}

// shape draws the behaviour of the applications at both ends of a call.
func (s *session) shape(c *call) {
	r, p := &s.random, &s.ends[c.to()].plan
	c.params = r.skewed(p.Largest)
	if s.heavy && r.oneIn(3) {
		c.params = r.within(p.Largest/2, p.Largest)
	}
	c.result = r.skewed(s.ends[c.from].plan.Largest)
	c.cost = c.params + p.Overhead
	if c.stream {
		c.cost += p.Window
	}
	if c.depth < c.deepest {
		c.toNest = 1
		if r.oneIn(3) && c.depth < 4 {
			c.toNest = r.within(1, 3)
		}
	}
	c.first, c.hasty, c.abrupt = r.oneIn(2), r.oneIn(8), r.oneIn(8)
	if r.oneIn(12) {
		c.cancelAt = s.counts.Steps + r.within(1, 400)
	}
	c.up.c, c.up.from, c.up.isUp = c, c.from, true
	c.down.c, c.down.from = c, c.to()
	s.shapeDirection(&c.up)
	s.shapeDirection(&c.down)
	if c.stream && r.oneIn(5) {
		c.up.feeds(&c.down) // an echo
	}
}

func (s *session) shapeDirection(d *direction) {
	r := &s.random
	d.sendSleep, d.recvSleep, d.stopAt = -1, -1, -1
	if !d.c.stream {
		return
	}
	d.left = r.below(1 + r.below(1+s.blocks))
	d.bulk = s.crowd || r.oneIn(3)
	d.slow = s.lazy || r.oneIn(4)
	if r.oneIn(10) {
		d.stopAt = r.below(1 + d.left)
	}
}

// putToSleep chooses which handler, sender or receiver of c never continues. c is sleepy.
func (s *session) putToSleep(c *call) {
	r := &s.random
	if c.depth > 0 && !r.oneIn(3) {
		return
	}
	c.cancelAt = 0
	c.asleep = r.oneIn(2)
	for _, d := range []*direction{&c.up, &c.down} {
		if !c.stream || !r.oneIn(2) {
			continue
		}
		d.left += r.within(1, 2*s.blocks)
		d.stopAt, d.bulk = -1, true
		if r.oneIn(4) {
			d.sendSleep = r.below(d.left)
		} else {
			d.recvSleep = r.below(1 + r.below(6))
		}
	}
	if c.up.recvSleep < 0 && c.down.recvSleep < 0 {
		c.asleep = true
	}
}

// maySleep reports whether a new tree may contain a sleeper: the resources that its root would hold
// for ever must leave a worker, windows, and room for parameters to other calls.
func (s *session) maySleep(c *call) bool {
	here, there := &s.ends[c.from], &s.ends[c.to()]
	p := &there.plan
	if s.stopped || !s.random.oneIn(s.sleepEvery) || there.asleep.handlers+1 >= p.Workers {
		return false
	}
	left := 1
	if s.allAsleep { // calls without Blocks must still proceed
		left = 0
	}
	if c.stream && here.asleep.callers+left >= here.plan.Callers {
		return false
	}
	if there.asleep.params+c.params+p.Largest+p.Nested > p.Room-p.Room/8 {
		return false
	}
	there.asleep.handlers++
	there.asleep.params += c.params
	if c.stream {
		here.asleep.callers++
	}
	return true
}

// fallsAsleep reports whether the application of d, which has just ended a Receive, sleeps for ever
// from now on. The debt of its next Block may move to the room of running calls, and must leave
// enough room to other calls.
func (s *session) fallsAsleep(e *end, d *direction) bool {
	if !d.c.sleepy || d.recvSleep >= 0 {
		return false
	}
	debt, p := d.debt+d.running, &e.plan
	if debt > 0 && e.asleep.params+debt+p.Largest+p.Nested > p.Room-p.Room/8 || !s.random.oneIn(2) {
		return false
	}
	e.asleep.params += debt
	return true
}
