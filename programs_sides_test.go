package asterisque_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// lots draws the actions of a program.
type lots struct{ *rand.Rand }

func lotsOf(seed, number uint64) lots {
	return lots{rand.New(rand.NewPCG(seed*0x9e3779b97f4a7c15, number))}
}

func (l lots) oneIn(n int) bool { return l.IntN(n) == 0 }

// within returns a number from low to high.
func (l lots) within(low, high int) int { return low + l.IntN(max(high-low, 0)+1) }

// skewed returns a number from low to high, small ones more often.
func (l lots) skewed(low, high int) int {
	span := max(high-low, 0)
	return low + min(span, l.IntN(1<<l.IntN(bits.Len(uint(span))+1)))
}

// upTo returns a time up to d.
func (l lots) upTo(d time.Duration) time.Duration { return time.Duration(l.Int64N(int64(d))) }

func (l lots) side() side {
	for {
		s := side{gate: l.within(1, 3), share: -1, pings: !l.oneIn(4)}
		s.in = l.inbound()
		s.workers = l.skewed(1, 64)
		if l.oneIn(2) {
			s.largest = l.skewed(kib, min(s.in.Soft.Bytes/8, 4<<20))
		}
		largest := s.largest
		if largest == 0 {
			largest = min(4<<20, s.in.Soft.Bytes/8)
		}
		plan, err := flow.NewPlan(s.in.Soft, largest, s.workers)
		if err != nil {
			continue
		}
		s.plan = plan
		s.rare(l)
		return s
	}
}

func (l lots) inbound() (in limits.Limits) {
	in.Soft.Bytes = 64 * kib << min(l.IntN(10), l.IntN(10))
	if l.oneIn(2) {
		in.Soft.Bytes = l.within(in.Soft.Bytes, 2*in.Soft.Bytes)
	}
	if l.oneIn(2) {
		in.Soft.Messages = l.within(64, in.Soft.Bytes/512)
	}
	if !l.oneIn(4) {
		in.Hard.Bytes = in.Soft.Bytes + in.Soft.Bytes/8
	}
	return in
}

// outbound draws the limits of a side. Its peer accepts messages of at most largest bytes.
func (l lots) outbound(largest int, posts bool) (out limits.Limits) {
	out.Soft.Bytes = l.skewed(kib, 32<<20)
	if l.oneIn(2) {
		out.Soft.Messages = l.skewed(1, 4096)
	}
	if !posts && !l.oneIn(4) {
		out.Hard.Bytes = out.Soft.Bytes + 2*largest + 128*kib
	}
	return out
}

func (l lots) cable() (c cable) {
	c.kind = [...]cableKind{hoses, hoses, hoses, inMemoryPipes, slowPipes}[l.IntN(5)]
	c.room = [...]int{0, 1 + l.IntN(100), 4 * kib, 64 * kib, 1 << 20, 4 << 20}[l.IntN(6)]
	c.piece = [...]int{512, 4 * kib, 64 * kib}[l.IntN(3)]
	if l.oneIn(2) {
		c.pause = time.Duration(c.piece) * time.Second / time.Duration(4<<20<<l.IntN(5))
	}
	c.delay.Delay = time.Microsecond << l.IntN(13)
	if l.oneIn(2) {
		c.delay.Bandwidth = 4 << 20 << l.IntN(5)
	}
	return c
}

func (l lots) habits() habits {
	h := habits{
		threads: l.skewed(1, 16), calls: l.skewed(1, 6),
		mostBlocks: l.skewed(1, 40), mostBytes: kib << l.IntN(7),
		nestEvery: l.within(1, 6), sleepEvery: never, giveUps: 12, priorities: 1,
		posts: l.oneIn(4), resumes: l.oneIn(3),
	}
	if l.oneIn(2) {
		h.sleepEvery = l.within(1, 8)
	}
	if l.oneIn(8) {
		h.giveUps = 2
	}
	if l.oneIn(2) {
		h.priorities = l.within(2, 5)
	}
	if h.resumes && !l.oneIn(4) {
		h.cuts = l.within(1, 6)
	}
	if l.oneIn(6) {
		h.pauses = l.within(1, 4)
	}
	if l.oneIn(6) { // grants to sleepers may exhaust the budget then
		h.resizes, h.sleepEvery, h.resumes, h.cuts = l.within(1, 4), never, false, 0
	}
	return h
}

// side is the configuration drawn for the node of one end.
type side struct {
	in, out     limits.Limits
	largest     int // message; 0: derived from in
	workers     int
	nodeWorkers int // 0: any number
	maxWaiting  int // likewise
	callWindow  int // likewise; of function calledPlain
	window      int // 0: the default
	share       float64
	gate        int // places of limited functions
	pings       bool

	plan flow.Plan // granted to its peer
}

const kib = 1 << 10

// rare draws rare properties of nodes.
func (s *side) rare(l lots) {
	if l.oneIn(6) {
		s.nodeWorkers = l.within(1, s.workers)
	}
	if l.oneIn(12) {
		s.maxWaiting = l.within(1, 20)
	}
	if l.oneIn(6) {
		s.callWindow = l.within(1, 5)
	}
	if l.oneIn(6) {
		s.window = 16 * kib << l.IntN(6)
	}
	if l.oneIn(6) {
		s.share = float64(l.IntN(2)) / 2
	}
}

func (s *side) options() []asterisque.Option {
	opts := []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Inbound: s.in, Outbound: s.out}), asterisque.WithWorkers(asterisque.Workers{Session: s.workers})}
	if s.largest > 0 {
		opts = append(opts, asterisque.WithLimits(asterisque.Limits{MaxMessage: s.largest}))
	}
	if s.nodeWorkers > 0 {
		opts = append(opts, asterisque.WithWorkers(asterisque.Workers{Node: s.nodeWorkers}))
	}
	if s.maxWaiting > 0 {
		opts = append(opts, asterisque.WithWorkers(asterisque.Workers{Waiting: s.maxWaiting}))
	}
	if s.callWindow > 0 {
		opts = append(opts, asterisque.WithMaxOutstanding(calledPlain, s.callWindow))
	}
	if s.window > 0 {
		opts = append(opts, asterisque.WithLimits(asterisque.Limits{Window: s.window}))
	}
	switch {
	case s.share == 0: // strict
		opts = append(opts, asterisque.WithPriorities(asterisque.Priorities{LowerShare: -1}))
	case s.share > 0:
		opts = append(opts, asterisque.WithPriorities(asterisque.Priorities{LowerShare: s.share}))
	}
	if !s.pings {
		opts = append(opts, asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
	}
	return opts
}

// String returns the properties of a side that are not the default.
func (s side) String() string {
	return fmt.Sprintf("in %v (hard %v), out %v (hard %v), messages of %d, workers %d of %d, waiting %d, call window %d, window %d, share %v, gates of %d",
		s.in.Soft, s.in.Hard, s.out.Soft, s.out.Hard, s.plan.Largest, s.workers, s.nodeWorkers, s.maxWaiting, s.callWindow, s.window, s.share, s.gate)
}

// takes returns the number of workers.
func (s *side) takes() int {
	if s.nodeWorkers > 0 {
		return min(s.workers, s.nodeWorkers)
	}
	return s.workers
}

// habits are the common properties of all calls of a program.
type habits struct {
	threads    int  // at each side
	calls      int  // of each thread, one after the other
	mostBlocks int  // of a direction
	mostBytes  int  // of a message, mostly
	nestEvery  int  // one call in nestEvery calls back
	sleepEvery int  // one call in sleepEvery sleeps until it is canceled
	giveUps    int  // one call in giveUps is canceled
	priorities int  // that are used
	posts      bool // some Blocks are sent without waiting
	resumes    bool // the session outlives its wires
	cuts       int  // losses of the wire
	pauses     int  // of the session
	resizes    int  // changes of limits

	partLen     int // bytes of the largest part of a message; 0: as the protocol allows
	ending      contextEnd
	endAt       time.Duration
	endOf       int  // the side that ends the session
	intercepted bool // interceptors wrap all calls, and pass them on
}

// contextEnd says how a program ends its session while calls are made.
type contextEnd uint8

const (
	unending contextEnd = iota
	drains
	closes
)

// drawEnding draws how messages are divided, and how the session ends. It has lots of its own, so
// that the rest of the program of a seed does not change.
func (h *habits) drawEnding(l lots) {
	if l.oneIn(2) {
		h.partLen = 4 * kib << l.IntN(4)
	}
	h.intercepted = l.oneIn(3)
	if !l.oneIn(4) {
		return
	}
	h.ending, h.endAt, h.endOf = drains, l.upTo(30*time.Millisecond), l.IntN(2)
	if l.oneIn(4) {
		h.ending = closes
	}
	h.sleepEvery, h.resizes, h.posts = never, 0, false
	if l.oneIn(2) { // many large messages
		h.mostBytes = max(h.mostBytes, 64*kib)
	}
}

// never is the n of oneIn for an event that does not happen.
const never = 1 << 30
