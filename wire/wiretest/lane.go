package wiretest

import (
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/fifo"
)

// lane is one direction of a Link: the queue of the bottleneck and the flows that share it. All
// times are relative to its start. Each call first processes the events since the previous call,
// with the times at which they were due.
type lane struct {
	plan  schedule // these are fixed
	back  schedule // of the other direction
	room  int      // bytes that the queue holds
	drop  bool
	begin time.Time
	dice  seededChance

	mu sync.Mutex
	// guarded by mu, as all below; segments that wait or are passing
	queue   fifo.Queue[queuedSegment]
	free    time.Duration // when all in the queue will have passed
	sent    uint64        // how many segments have entered the queue
	done    LaneStats
	flows   []*flow
	turn    int           // the next of flows to send
	grain   time.Duration // minimum interval between wake-ups by time
	woken   time.Duration // time of the last one
	alarm   *time.Timer   // wakes waiting goroutines at a time; nil before the first wait
	alarmAt time.Duration // when, or never
}

// queuedSegment is a segment in the queue.
type queuedSegment struct {
	n     int
	end   time.Duration // when it will have passed
	again bool          // it was lost, and really passes later: its time is used now
}

// never is later than everything.
const never = time.Duration(1<<63 - 1)

func newLane(l Lane, begin time.Time, plan, back schedule, dice seededChance) *lane {
	if l.Queue <= 0 {
		l.Queue = DefaultLinkBuffer
	}
	return &lane{plan: plan, back: back, room: l.Queue, drop: l.Drop, begin: begin, dice: dice, alarmAt: never}
}

// newFlow returns a connection, or one direction of it, that shares the lane. It takes as many
// bytes as buffer when the queue is full.
func (l *lane) newFlow(buffer int, packets bool) *flow {
	f := &flow{lane: l, buffer: buffer, packets: packets, putBy: never, takeBy: never}
	f.changed.L = &l.mu
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flows = append(l.flows, f)
	return f
}

// setGrain limits how often waiting goroutines wake up while there is much traffic.
func (l *lane) setGrain(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grain = d
}

// removeLocked forgets a flow.
func (l *lane) removeLocked(f *flow) {
	l.flows = slices.DeleteFunc(l.flows, func(g *flow) bool { return g == f })
}

func (l *lane) now() time.Duration { return time.Since(l.begin) }

func (l *lane) stats() LaneStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advanceLocked(l.now())
	return l.done
}

// advanceLocked processes all events that are due.
func (l *lane) advanceLocked(now time.Duration) {
	for at := l.nextLocked(); at <= now; at = l.nextLocked() {
		for l.queue.Len() > 0 && l.queue.Peek().end <= at {
			p := l.queue.Pop()
			l.done.Passed += int64(p.n)
			if !p.again {
				l.done.Queued -= p.n
			}
		}
		l.admitLocked(at)
	}
}

// nextLocked returns when the next segment leaves the queue, so that another may enter it.
func (l *lane) nextLocked() time.Duration {
	if l.queue.Len() == 0 {
		return never
	}
	return l.queue.Peek().end
}

// admitLocked moves segments of the flows into the queue in turn, as long as there is room.
func (l *lane) admitLocked(at time.Duration) {
	for idle := 0; idle < len(l.flows); {
		f := l.flows[l.turn%len(l.flows)]
		n := f.offerLocked(at)
		switch {
		case n == 0:
			idle++
		case l.done.Queued == 0 || l.done.Queued+n <= l.room:
			l.sendLocked(f, n, at)
			f.endLocked(at)
			idle = 0
		case !l.drop:
			return // the next flow waits for room
		case at < f.calm:
			idle++
		default:
			l.loseLocked(f, n, at)
			idle = 0
		}
		l.turn = (l.turn + 1) % len(l.flows)
	}
}

// pieceLocked returns how many bytes of a stream enter the queue together.
func (l *lane) pieceLocked(at time.Duration) int {
	if l.drop {
		return segment
	}
	return min(l.plan.at(at).piece(), max(segment, l.room/8))
}

// roundTripLocked returns how long it takes now to get an answer.
func (l *lane) roundTripLocked(at time.Duration) time.Duration {
	return max(l.free-at, 0) + l.plan.at(at).Delay + l.back.at(at).Delay
}

// sendLocked puts n bytes of a flow into the queue, or its end if n is 0.
func (l *lane) sendLocked(f *flow, n int, at time.Duration) {
	l.free = l.plan.passed(max(at, l.free), n)
	c := l.plan.at(l.free)
	due := l.free + c.Delay
	if c.Jitter > 0 {
		due += time.Duration(l.dice.roll(l.sent) % uint64(c.Jitter))
	}
	l.sent++
	f.departLocked(n, due)
	if l.free == at {
		l.done.Passed += int64(n)
		return
	}
	l.queue.Push(queuedSegment{n: n, end: l.free})
	l.done.Queued += n
	l.done.Most = max(l.done.Most, l.done.Queued)
}

// loseLocked loses n bytes of a flow, which arrive nevertheless, a round trip later.
func (l *lane) loseLocked(f *flow, n int, at time.Duration) {
	l.done.Dropped++
	f.calm = at + l.roundTripLocked(at)
	end := l.plan.passed(f.calm, n)
	f.departLocked(n, end+l.plan.at(end).Delay)
	l.free = l.plan.passed(max(at, l.free), n)
	l.queue.Push(queuedSegment{n: n, end: l.free, again: true})
}

// touchLocked wakes the goroutines that can continue after a change of f, or sets the alarm for
// them. A change of one flow never moves the wake-up time of another flow forward.
func (l *lane) touchLocked(f *flow, now time.Duration) {
	if at := f.wakeLocked(now); at <= now {
		f.changed.Broadcast()
	} else {
		l.setAlarmLocked(at, now)
	}
}

// setAlarmLocked schedules a call of ring.
func (l *lane) setAlarmLocked(at, now time.Duration) {
	if at = max(at, l.woken+l.grain); at >= l.alarmAt {
		return // an early alarm does no harm
	}
	l.alarmAt = at
	if l.alarm == nil {
		l.alarm = time.AfterFunc(at-now, l.ring)
		return
	}
	l.alarm.Reset(at - now)
}

// ring is called when a waiting goroutine may be due.
func (l *lane) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.alarmAt, l.woken = never, now
	l.advanceLocked(now)
	for _, f := range l.flows {
		l.touchLocked(f, now)
	}
}
