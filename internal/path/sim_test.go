package path_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque/internal/path"
)

// sim is a sender that always or sometimes has something to send, a bottleneck with a queue, and a
// reader that sends marks back. It has its own time.
type sim struct {
	now    time.Duration
	events events
	dice   *rand.Rand

	m       path.Model
	rate    float64 // of the bottleneck, in bytes per second
	delay   time.Duration
	jitter  time.Duration // of the path to the peer, at most
	offered float64       // bytes per second that the application sends; 0: no limit
	burst   float64       // bytes that pass at once before rate applies, as with a policer
	tokens  float64
	free    time.Duration // when the bottleneck has sent everything
	written uint64
	crossed uint64 // bytes that have arrived
	marked  uint64
	shut    bool // the limit was reached since the last mark
	had     float64
	last    time.Duration // arrival of the latest byte
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func newSim(rate float64, roundTrip time.Duration) *sim {
	s := &sim{now: time.Second, rate: rate, delay: roundTrip / 2, dice: rand.New(rand.NewPCG(1, 2))}
	s.at(s.now, s.tick)
	return s
}

func (s *sim) at(t time.Duration, do func()) { heap.Push(&s.events, event{max(t, s.now), do}) }

// run advances the time by d.
func (s *sim) run(d time.Duration) {
	for end := s.now + d; ; {
		if len(s.events) == 0 || s.events[0].at > end {
			s.now = end
			return
		}
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
}

// tick adds the bytes that the application offers.
func (s *sim) tick() {
	s.send()
	s.at(s.now+time.Millisecond, s.tick)
	s.had += s.offered / 1000
}

// send writes the bytes that may be in flight.
func (s *sim) send() {
	for {
		inFlight := int(s.written - s.m.Read())
		if s.offered > 0 && s.had < 1000 {
			return
		}
		if inFlight >= s.m.Limit() {
			s.shut = true
			if !s.m.InFlight() || s.m.Room() && int(s.written-s.marked) >= s.m.Spacing() {
				s.mark()
			}
			return
		}
		n := s.m.Part()
		if s.offered > 0 {
			n = min(n, int(s.had))
			s.had -= float64(n)
		}
		if int(s.written-s.marked) >= s.m.Spacing() && s.m.Room() {
			s.mark()
		}
		s.written += uint64(n)
		arrived := s.cross(n)
		s.at(arrived, func() { s.crossed += uint64(n) })
	}
}

// cross returns the arrival time of n bytes that are written now.
func (s *sim) cross(n int) time.Duration {
	if idle := s.now - s.free; idle > 0 {
		s.tokens = min(s.burst, s.tokens+idle.Seconds()*s.rate)
		s.free = s.now
	}
	paid := math.Min(s.tokens, float64(n))
	s.tokens -= paid
	s.free += time.Duration((float64(n) - paid) / s.rate * 1e9)
	at := s.free + s.delay
	if s.jitter > 0 {
		at += time.Duration(s.dice.Int64N(int64(s.jitter)))
	}
	s.last = max(s.last, at) // order is kept
	return s.last
}

func (s *sim) mark() {
	n := s.written
	s.m.Departs(s.now, n, !s.shut)
	s.shut = false
	s.marked = n
	s.at(s.cross(0)+s.delay, func() {
		s.m.Returns(s.now, n)
		s.send()
	})
}
