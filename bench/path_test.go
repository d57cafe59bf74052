package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// The rate of a path is halved and doubled.
func TestPath_RateChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := pathSpec{roundTrip: 50 * time.Millisecond, rate: 1000, halved: 5 * time.Second}
		lane := spec.lane()
		require.Equal(t, 25*time.Millisecond, lane.Delay)
		require.Equal(t, 500, lane.Changes[0].Rate)
		require.Equal(t, 5*time.Second, lane.Changes[0].At)
		require.Equal(t, 1000, lane.Changes[1].Rate)
		for _, c := range lane.Changes {
			require.Equal(t, lane.Delay, c.Delay)
		}

		p := newPath(&spec)
		for _, c := range []struct{ from, to, want float64 }{
			{0, 4, 4000}, {4, 5, 1000}, {4, 6, 1500}, {5, 10, 2500}, {1, 21, 15000}, {7, 7, 0},
		} {
			require.InDelta(t, c.want, p.allows(p.after(c.from), p.after(c.to)), 1e-6, "%v to %v", c.from, c.to)
		}
		for at, want := range map[float64]bool{0.5: false, 4.9: false, 5.1: true, 5.9: true, 6.1: false, 10.5: true} {
			require.Equal(t, want, p.changing(p.after(at)), "%v", at)
		}
	})
}

// after returns the time that is the given number of seconds after the start of p.
func (p *path) after(seconds float64) time.Time {
	return p.begin.Add(time.Duration(seconds * float64(time.Second)))
}

// The queue of a path holds a round trip.
func TestPath_Queue(t *testing.T) {
	for _, c := range []struct {
		spec pathSpec
		want int
	}{
		{pathSpec{roundTrip: 50 * time.Millisecond, rate: 10 * mbit}, 256 << 10},
		{pathSpec{roundTrip: 50 * time.Millisecond, rate: 1000 * mbit}, 6_250_000},
		{pathSpec{roundTrip: 50 * time.Millisecond}, 256 << 10},
	} {
		require.Equal(t, c.want, c.spec.lane().Queue)
	}
}

func TestJainsIndex(t *testing.T) {
	for _, c := range []struct {
		values []int64
		want   float64
	}{
		{[]int64{7, 7, 7, 7}, 1},
		{[]int64{7, 0, 0, 0}, 0.25},
		{[]int64{1, 3}, 0.8},
		{[]int64{0, 0}, 0},
		{nil, 0},
	} {
		require.InDelta(t, c.want, jain(c.values), 1e-9)
	}
}

// A meter counts each stream.
func TestMeter_EachStream(t *testing.T) {
	m := new(meter)
	io.Copy(io.Discard, m.reader(bytes.NewReader(make([]byte, 1000))))
	m.stream().Add(7)
	require.Equal(t, []int64{1000, 7}, m.now())

	var none *meter
	r := bytes.NewReader(nil)
	require.Same(t, r, none.reader(r), "without counting there is no cost")
	none.stream().Add(1)
}

// The duration of a paced call counts from its due time.
func TestPaced_FromDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func() error { fakeclock.Sleep(35 * time.Millisecond); return nil }
		p := newPaced([]op{slow, slow})
		p.run(100*time.Millisecond, 10*time.Millisecond)
		calls, err := p.finish(time.Minute)
		require.NoError(t, err)
		require.Len(t, calls, 10)
		longest := time.Duration(0)
		for _, c := range calls {
			longest = max(longest, c.took)
		}
		require.Equal(t, 35*5*time.Millisecond-80*time.Millisecond, longest, "the ninth is the fifth of its caller")
	})
}

// Paced calls that do not end count as well.
func TestPaced_UnfinishedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		hangs := func() error { <-end; return nil }
		p := newPaced([]op{hangs, hangs})
		p.run(20*time.Millisecond, 10*time.Millisecond)
		calls, err := p.finish(time.Second)
		require.NoError(t, err)
		require.Len(t, calls, 2)
		require.Equal(t, 1020*time.Millisecond, max(calls[0].took, calls[1].took))
		close(end)
	})
}

// A failed paced call is an error.
func TestPaced_FailureIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced([]op{func() error { return errors.New("it broke") }})
		p.run(20*time.Millisecond, 10*time.Millisecond)
		_, err := p.finish(time.Second)
		require.ErrorContains(t, err, "it broke")
	})
}

// A single caller is not late for calls that it has missed.
func TestPaced_SingleCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaced([]op{func() error { fakeclock.Sleep(35 * time.Millisecond); return nil }})
		p.run(100*time.Millisecond, 10*time.Millisecond)
		calls, err := p.finish(time.Minute)
		require.NoError(t, err)
		require.Len(t, calls, 3)
		for _, c := range calls {
			require.Equal(t, 35*time.Millisecond, c.took)
		}
	})
}
