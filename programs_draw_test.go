package asterisque_test

import (
	"time"

	"github.com/asterisque-go/asterisque/priority"
)

// way is one direction of the Blocks of a call.
type way struct {
	e    *errand
	lots lots // the sender's

	blocks   int
	most     int           // bytes of a Block
	echo     bool          // each Block is sent when one of the other direction has been taken
	stream   bool          // the Blocks are the pieces of a stream of bytes
	slow     time.Duration // pause between two Blocks that are taken
	paced    time.Duration // pause between two that are sent
	stopAt   int           // number of Blocks after which the receiver stops the stream; -1: never
	pauseAt  int           // number after which it pauses the pipe; -1: never
	sleepAt  int           // number after which it sleeps until the end; -1: never
	sendless int           // likewise, for the sender
	hurried  int           // number of attempts to receive with a short deadline
	hurries  int           // number of such attempts so far; the receiver's
	giveUps  int           // one in giveUps Blocks is canceled when it has to wait; 0: none
	posts    bool
	loss     uint8
	ttl      time.Duration

	transit // progress
}

// errand is a call with all actions of its two ends.
type errand struct {
	p      *program
	number uint32
	lots   lots
	from   int // the side that calls
	within *errand

	function uint16
	key      uint32
	level    int // of the next key or gate that may be taken within it
	priority priority.Priority
	depth    int
	deepest  int // depth of the nested calls
	stream   bool
	durable  bool
	params   int // bytes
	result   int

	kids      int      // number of nested calls
	seeds     []uint64 // of the nested calls
	together  bool     // all at once
	kidsFirst bool     // before the Blocks
	hasty     bool     // the handler returns before it has taken all Blocks
	stubborn  time.Duration
	late      time.Duration // time from the result until the caller takes the Blocks

	sleepy bool // an end in the tree sleeps until it is canceled
	asleep bool // the handler does

	giveUp   time.Duration // time after which the caller cancels; 0: never
	deadline time.Duration
	ttl      time.Duration

	up, down way

	caller, callee doing
	ran            int // guarded by the lock of the program
}

// The functions of both services. Functions with keys and gates exist once for each level.
const (
	calledPlain uint16 = iota + 1
	calledAsleep
	calledBorrowed
	calledInline
	calledInlineTyped
	calledTyped
	calledUnknown
	calledKeyed uint16 = 10 * iota
	calledLimited
	calledBoth
)

// levels is the number of keys or gates that a chain of calls may hold. A holder of one of them
// waits only for higher ones.
const levels = 8

// outermost draws a call that is not nested.
func (p *program) outermost(from int, l lots) *errand {
	e := p.errand(from, nil, l)
	if l.oneIn(p.nestEvery) {
		e.deepest = l.within(1, 12)
	}
	if l.oneIn(p.sleepEvery) && p.maySleep(e) {
		e.sleepy, e.function = true, calledAsleep
	}
	e.draw()
	return e
}

// errand returns a call with few properties drawn.
func (p *program) errand(from int, within *errand, l lots) *errand {
	e := &errand{p: p, from: from, within: within, lots: l, function: calledPlain, stream: !l.oneIn(3)}
	e.priority = priority.Priority(l.IntN(p.priorities) - p.priorities/2)
	e.params, e.result = e.size(1-from), e.size(from)
	if within != nil {
		e.depth, e.deepest, e.level = within.depth+1, within.deepest, within.level
		if e.sleepy = within.sleepy; e.sleepy {
			e.function = calledAsleep
		}
	}
	p.mu.Lock()
	e.number = uint32(len(p.errands))
	p.errands = append(p.errands, e)
	p.mu.Unlock()
	return e
}

// size draws the size of a message to a side.
func (e *errand) size(to int) int {
	largest := e.p.sides[to].plan.Largest - 64 // a codec and the meta may add a little
	if e.lots.oneIn(16) {
		return e.lots.skewed(0, largest)
	}
	return e.lots.skewed(0, min(largest, e.p.mostBytes))
}

// draw draws the remaining properties.
func (e *errand) draw() {
	l := e.lots
	if !e.sleepy {
		e.drawFunction()
		if l.oneIn(e.p.giveUps) {
			switch l.IntN(3) {
			case 0:
				e.giveUp = l.upTo(50*time.Millisecond) + 1
			case 1:
				e.deadline = l.upTo(50*time.Millisecond) + 1
			default:
				e.ttl = l.upTo(50*time.Millisecond) + 1
			}
		}
	}
	if e.depth < e.deepest && !e.leaf() {
		e.kids = 1
		if l.oneIn(3) && e.depth < 4 {
			e.kids = l.within(1, 3)
		}
		for range e.kids {
			e.seeds = append(e.seeds, l.Uint64())
		}
	}
	e.together, e.kidsFirst, e.hasty = l.oneIn(2), l.oneIn(2), l.oneIn(8)
	if l.oneIn(16) {
		e.stubborn = l.upTo(20 * time.Millisecond)
	}
	e.up.draw(e, 1-e.from)
	e.down.draw(e, e.from)
	if e.stream && !e.up.stream && l.oneIn(5) {
		e.down.echo, e.down.stream = true, false
	}
	if e.sleepy {
		e.fallAsleep()
	} else if e.stream && l.oneIn(12) {
		e.late = l.upTo(20*time.Millisecond) + 1
		// it waits for no other end
		e.down = way{e: e, lots: e.down.lots, blocks: 1, most: 200, stopAt: -1, pauseAt: -1, sleepAt: -1, sendless: -1}
	}
}

// leaf reports whether the function makes no nested calls.
func (e *errand) leaf() bool {
	switch e.function {
	case calledInline, calledInlineTyped, calledTyped, calledUnknown:
		return true
	}
	return false
}

func (e *errand) drawFunction() {
	l := e.lots
	switch l.IntN(10) {
	case 0:
		e.function = calledBorrowed
	case 1:
		e.function = [...]uint16{calledInline, calledInlineTyped, calledTyped, calledUnknown}[l.IntN(4)]
		e.stream = e.stream && e.function == calledUnknown
	case 2, 3, 4:
		e.drawOrder()
	}
	e.durable = e.within == nil && !e.stream && e.from == 0 && e.p.resumes && l.oneIn(4)
}

// drawOrder draws a function with a key or a gate.
func (e *errand) drawOrder() {
	l := e.lots
	for up := e.within; up != nil; up = up.within {
		if up.from == e.from && up.function >= calledKeyed && l.oneIn(3) {
			// the call need not wait for these
			e.function, e.key = up.function, up.key
			return
		}
	}
	if e.level >= levels {
		return
	}
	level := l.within(e.level, min(e.level+2, levels-1))
	e.level = level + 1
	e.function = [...]uint16{calledKeyed, calledLimited, calledBoth}[l.IntN(3)] + uint16(level)
	e.key = uint32(l.IntN(3))
}

func (w *way) draw(e *errand, to int) {
	l := e.lots
	w.lots = lotsOf(l.Uint64(), 0)
	w.e, w.stopAt, w.pauseAt, w.sleepAt, w.sendless = e, -1, -1, -1, -1
	if !e.stream {
		return
	}
	w.blocks = l.IntN(1 + l.IntN(1+e.p.mostBlocks))
	w.most = l.skewed(0, min(e.p.mostBytes, e.p.sides[to].plan.Largest))
	if l.oneIn(16) {
		w.blocks, w.most = 1+l.IntN(3), e.p.sides[to].plan.Largest
	}
	if l.oneIn(4) {
		w.slow = l.upTo(5 * time.Millisecond)
	}
	if l.oneIn(4) {
		w.paced = l.upTo(5 * time.Millisecond)
	}
	if l.oneIn(10) {
		w.stopAt = l.IntN(1 + w.blocks)
	}
	if l.oneIn(5) {
		w.stream = true
		return
	}
	w.drawManners()
}

// drawManners draws properties that a stream of bytes cannot have.
func (w *way) drawManners() {
	l := w.e.lots
	if l.oneIn(10) {
		w.pauseAt = l.IntN(1 + w.blocks)
	}
	if l.oneIn(10) && !w.e.sleepy {
		w.hurried = l.within(1, 5)
	}
	if l.oneIn(6) {
		w.giveUps = l.within(1, 4)
	}
	w.posts = w.e.p.posts && l.oneIn(3)
	if l.oneIn(8) {
		w.loss = uint8(l.within(1, 127))
	}
	if l.oneIn(8) {
		w.ttl = l.upTo(20*time.Millisecond) + 1
	}
}

// fallAsleep makes ends of the call sleep until it is canceled.
func (e *errand) fallAsleep() {
	l := e.lots
	if e.depth > 0 && !l.oneIn(3) {
		return
	}
	e.asleep = l.oneIn(2)
	for _, w := range []*way{&e.up, &e.down} {
		if !e.stream || !l.oneIn(2) {
			continue
		}
		w.blocks += l.within(1, 2*e.p.mostBlocks)
		w.stopAt = -1
		if l.oneIn(4) {
			w.sendless = l.IntN(w.blocks)
		} else {
			w.sleepAt = l.IntN(1 + l.IntN(6))
		}
	}
	if e.up.sleepAt < 0 && e.down.sleepAt < 0 {
		e.asleep = true
	}
}

// maySleep reports whether a tree may contain a sleeper: the resources that its root would hold
// until the end must leave a worker, a window for either kind of stream, and budget for parameters.
func (p *program) maySleep(e *errand) bool {
	here, there := &p.sleepers[e.from], &p.sleepers[1-e.from]
	plan, s := &p.sides[1-e.from].plan, &p.sides[1-e.from]
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case there.running+1 >= s.takes():
		return false
	case e.stream && here.callers+1 >= p.sides[e.from].plan.Callers:
		return false
	case there.params+e.params+plan.Largest+plan.Nested > plan.Room-plan.Room/8:
		return false
	}
	there.running++
	there.params += e.params
	if e.stream {
		here.callers++
	}
	return true
}

// sleepers counts the resources of sleepers at one side.
type sleepers struct{ running, callers, params int }
