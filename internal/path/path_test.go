package path_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	mbit = 1e6 / 8 // bytes per second
	ms   = time.Millisecond
)

// holds returns the capacity of the bottleneck and its path at its rate, in bytes.
func (s *sim) holds() float64 { return s.rate * (2 * s.delay).Seconds() }

// throughput advances the time by d, and returns the part of the rate that was used.
func (s *sim) throughput(d time.Duration) float64 {
	before := s.crossed
	s.run(d)
	return float64(s.crossed-before) / d.Seconds() / s.rate
}

// wantEstimates fails unless the estimates of the model deviate by at most part from the true
// values.
func (s *sim) wantEstimates(t *testing.T, part float64) {
	t.Helper()
	require.InEpsilon(t, s.rate, s.m.Rate(), part, "rate")
	require.InEpsilon(t, 2*s.delay, s.m.RoundTrip(), part, "round trip")
}

func TestModel_FullPath(t *testing.T) {
	for _, c := range []struct {
		rate float64
		trip time.Duration
	}{
		{10 * mbit, 50 * ms}, {100 * mbit, 10 * ms}, {100 * mbit, 200 * ms}, {1000 * mbit, 50 * ms}, {3e9, ms / 10},
	} {
		t.Run(fmt.Sprintf("%.0f Mbit, %v", c.rate/mbit, c.trip), func(t *testing.T) {
			s := newSim(c.rate, c.trip)
			s.run(25 * c.trip)
			s.wantEstimates(t, 0.1)
			require.Greater(t, s.throughput(8*time.Second), 0.95)
			s.wantEstimates(t, 0.1)
			slack := 0.002
			if c.trip < 2*ms {
				slack = 0.008
			}
			require.Less(t, float64(s.written-s.m.Read()), 1.25*s.holds()+0.2*s.holds()+slack*c.rate+64<<10)
		})
	}
}

// TestModel_UsesPaths includes some measurements of the round trip if the path is long.
func TestModel_UsesPaths(t *testing.T) {
	for _, rate := range []float64{1e5, 1e6, 1e7, 1e8} {
		for _, trip := range []time.Duration{ms, 20 * ms, 200 * ms, time.Second} {
			s := newSim(rate, trip)
			s.run(3*time.Second + 20*trip)
			require.Greater(t, s.throughput(time.Minute+100*trip), 0.95, "%.0f bytes a second, %v", rate, trip)
		}
	}
}

func TestModel_PathChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*sim)
		soon   time.Duration // after which the estimates are right again
	}{
		"half the rate":          {func(s *sim) { s.rate /= 2 }, time.Second},
		"a tenth of the rate":    {func(s *sim) { s.rate /= 10 }, 5 * time.Second},
		"twice the rate":         {func(s *sim) { s.rate *= 2 }, time.Second},
		"ten times the rate":     {func(s *sim) { s.rate *= 10 }, 2 * time.Second},
		"another way, longer":    {func(s *sim) { s.delay *= 2 }, 2 * time.Second},
		"another way, much more": {func(s *sim) { s.delay *= 4 }, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(100*mbit, 50*ms)
			s.run(5 * time.Second)
			c.change(s)
			s.run(c.soon)
			require.InEpsilon(t, s.rate, s.m.Rate(), 0.25)
			require.Greater(t, s.throughput(5*time.Second), 0.85)
			s.run(10 * time.Second) // the round trip has been measured by then
			s.wantEstimates(t, 0.1)
		})
	}
}

func TestModel_ShorterPath(t *testing.T) {
	s := newSim(100*mbit, 50*ms)
	s.run(5 * time.Second)
	s.delay /= 4
	require.Greater(t, s.throughput(time.Second), 0.97)
	s.run(11 * time.Second)
	s.wantEstimates(t, 0.1)
}

func TestModel_RateDrops(t *testing.T) {
	s := newSim(100*mbit, 50*ms)
	s.run(5 * time.Second)
	before := s.m.Limit()
	s.rate /= 2
	queued := 75 * ms // the bytes in flight, at the new rate
	s.run(2 * queued)
	require.Less(t, s.m.Limit(), before/2, "the bytes in flight drain")
}

func TestModel_Jitter(t *testing.T) {
	for _, jitter := range []time.Duration{5 * ms, 10 * ms, 20 * ms} {
		t.Run(jitter.String(), func(t *testing.T) {
			s := newSim(100*mbit, 50*ms)
			s.jitter = jitter
			s.run(2 * time.Second)
			require.Greater(t, s.throughput(20*time.Second), 0.9)
			require.InEpsilon(t, s.rate, s.m.Rate(), 0.5)
			require.InDelta(t, 50*ms, s.m.RoundTrip(), float64(jitter+2*ms))
			require.Less(t, s.m.Limit(), int(2.5*s.holds()), "jitter opens no queue without bound")
		})
	}
}

func TestModel_Policer(t *testing.T) {
	s := newSim(10*mbit, 50*ms)
	s.burst = 1 << 20
	require.Greater(t, s.throughput(10*time.Second), 0.9)
	require.InEpsilon(t, s.rate, s.m.Rate(), 0.5, "the burst is forgotten")
}

func TestModel_LittleTraffic(t *testing.T) {
	s := newSim(100*mbit, 50*ms)
	s.run(3 * time.Second)
	known := s.m.Rate()
	s.offered = 1 * mbit
	s.run(30 * time.Second)
	require.InEpsilon(t, known, s.m.Rate(), 0.1, "the known rate stays known")
	s.offered = 0
	require.Greater(t, s.throughput(time.Second), 0.85)
}

func TestModel_Pause(t *testing.T) {
	s := newSim(100*mbit, 50*ms)
	s.run(3 * time.Second)
	s.offered = 1e-9
	s.run(time.Minute)
	s.offered = 0
	require.Greater(t, s.throughput(2*time.Second), 0.8)
	s.wantEstimates(t, 0.1)
}

func TestReturns_UnknownMark(t *testing.T) {
	s := newSim(10*mbit, 50*ms)
	s.run(time.Second)
	before := s.m
	require.False(t, s.m.Returns(s.now, 12345))
	require.Equal(t, before, s.m)
}

func TestLimit_Initial(t *testing.T) {
	s := newSim(10*mbit, time.Hour)
	s.run(time.Minute)
	require.Zero(t, s.m.RoundTrip())
	require.Zero(t, s.m.Rate())
	require.Equal(t, 128<<10, s.m.Limit())
	require.LessOrEqual(t, s.written, uint64(128<<10))
	took, _ := s.m.Waited(s.now)
	require.Equal(t, time.Minute, took.Round(time.Second))
}
