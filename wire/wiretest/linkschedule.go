package wiretest

import (
	"cmp"
	"slices"
	"time"
)

const (
	segment   = 1448                   // bytes that pass, or are lost, together
	together  = 100 * time.Microsecond // maximum time of bytes that pass together
	mostAsOne = 64 << 10               // bytes that pass together at most

	leastRead, mostRead = 4 << 10, 64 << 10 // bytes that a proxy reads at once, at most
)

// schedule has the configurations of a lane over time. It does not change.
type schedule []Change

// newSchedule returns the schedule of a lane, which begins at 0.
func newSchedule(l Lane) schedule {
	s := append(schedule{{Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter}}, l.Changes...)
	for i := range s {
		c := &s[i]
		c.Rate, c.Delay, c.Jitter = max(c.Rate, 0), max(c.Delay, 0), max(c.Jitter, 0)
	}
	slices.SortStableFunc(s[1:], func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	return s
}

// index returns the index of the configuration at a time.
func (s schedule) index(at time.Duration) int {
	i := len(s) - 1
	for i > 0 && s[i].At > at {
		i--
	}
	return i
}

// at returns the configuration at a time.
func (s schedule) at(t time.Duration) Change { return s[s.index(t)] }

// passed returns when n bytes have passed that start at a time.
func (s schedule) passed(at time.Duration, n int) time.Duration {
	left := float64(n)
	for i := s.index(at); ; i++ {
		rate := float64(s[i].Rate)
		if rate == 0 {
			return at
		}
		end := at + time.Duration(left/rate*float64(time.Second)+0.5)
		if i+1 == len(s) || end <= s[i+1].At {
			return end
		}
		left -= (s[i+1].At - at).Seconds() * rate
		at = s[i+1].At
	}
}

// piece returns how many bytes of a stream pass together.
func (c Change) piece() int {
	if c.Rate == 0 {
		return mostAsOne
	}
	return min(max(segment, int(float64(c.Rate)*together.Seconds())), mostAsOne)
}

// read returns the size of a proxy's reads: the bytes of 2 ms at the highest rate.
func (s schedule) read() int {
	highest := 0
	for _, c := range s {
		if c.Rate == 0 {
			return mostRead
		}
		highest = max(highest, c.Rate)
	}
	return min(max(highest/500, leastRead), mostRead)
}

// socket returns the buffer size of a proxy's sockets.
func (s schedule) socket() int { return 4 * s.read() }
