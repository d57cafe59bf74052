package path_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDebug(t *testing.T) {
	for _, c := range []struct {
		rate float64
		trip time.Duration
		jit  time.Duration
	}{{1.25e6, 50e6, 0}, {125e6, 50e6, 0}, {12.5e6, 200e6, 0}, {12.5e6, 10e6, 0}, {1e6, 1e6, 0}, {12.5e6, 50e6, 10e6}, {12.5e6, 50e6, 20e6}, {125000, 50e6, 0}, {3e9, 1e5, 0}} {
		s := newSim(c.rate, c.trip)
		s.jitter = c.jit
		t.Logf("--- %.0f %v", c.rate, c.trip)
		for i := range 15 {
			before := s.crossed
			step := 2 * c.trip
			if i > 10 {
				step = 3 * time.Second
			}
			s.run(step)
			t.Logf("%v rate %.2f trip %v limit %d inflight %d excess %d phase %d throughput %.2f", s.now, s.m.Rate()/c.rate, s.m.RoundTrip(), s.m.Limit(), s.written-s.m.Read(), s.excess, s.m.Phase(), float64(s.crossed-before)/step.Seconds()/c.rate)
		}
	}
	require.NotNil(t, t)
}

func TestDebugChange(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		trip time.Duration
		do   func(*sim)
	}{{"halved", 1.25e6, 50e6, func(s *sim) { s.rate /= 2 }}, {"doubled", 1.25e6, 50e6, func(s *sim) { s.rate *= 2 }},
		{"halved", 12.5e6, 50e6, func(s *sim) { s.rate /= 2 }}, {"tenth", 12.5e6, 50e6, func(s *sim) { s.rate /= 10 }},
		{"longer", 12.5e6, 50e6, func(s *sim) { s.delay *= 2 }}, {"4xlonger", 12.5e6, 50e6, func(s *sim) { s.delay *= 4 }},
		{"shorter", 12.5e6, 50e6, func(s *sim) { s.delay /= 4 }}, {"jitter", 12.5e6, 50e6, func(s *sim) { s.jitter = 15e6 }},
	} {
		s := newSim(c.rate, c.trip)
		s.run(3 * time.Second)
		c.do(s)
		t.Logf("--- %s", c.name)
		for i := range 24 {
			before := s.crossed
			step := s.delay
			if i > 16 {
				step = 3 * time.Second
			}
			s.run(step)
			t.Logf("%v rate %.2f trip %v limit %d inflight %d excess %d phase %d throughput %.2f", s.now, s.m.Rate()/s.rate, s.m.RoundTrip(), s.m.Limit(), s.written-s.m.Read(), s.excess, s.m.Phase(), float64(s.crossed-before)/step.Seconds()/s.rate)
		}
	}
}
