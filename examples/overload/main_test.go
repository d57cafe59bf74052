package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestShow_Figures runs the show by a clock that waits for all goroutines, so that the figures are
// those of the library, and not of the machine.
func TestShow_Figures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &show{out: &out, url: "mem://overload", measure: 300 * time.Millisecond}
		require.NoError(t, s.run(t.Context()))
		require.Empty(t, s.judge())
		require.InEpsilon(t, nominal, s.capacity, 0.01)
		require.Len(t, s.results, 6)
		require.Len(t, rows(out.String()), 6, out.String())
		for _, r := range s.results {
			l := r.load
			require.NotEmpty(t, l.answered[0])
			require.NotEmpty(t, l.answered[1])
			require.InEpsilon(t, s.capacity*float64(r.times)*l.measure.Seconds(), l.offered.Load(), 0.02, "it was offered what the table says")
			accounted := int64(len(l.answered[0])+len(l.answered[1])) + l.refused.Load() + l.lost.Load()
			require.Equal(t, l.offered.Load(), accounted, "each call was answered, refused or not made")
			if r.refuses {
				require.Greater(t, l.refused.Load(), l.offered.Load()/3, "what cannot be run is refused")
				require.Less(t, sorted(l.answered[0]).percentile(99), sorted(s.results[0].load.answered[0]).percentile(99), "refusing some calls makes the answered ones fast")
			}
		}
	})
}

// TestShow_MeasuresAgain requires that the show measures again if its time is shorter than a call.
func TestShow_MeasuresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &show{out: io.Discard, url: "mem://overload", measure: takes / 2}
		require.NoError(t, s.calibrate(t.Context()))
		require.NotZero(t, s.capacity)
	})
}

// TestShow_End relies on the show to fail by itself when the library misbehaves. On a busy machine
// it may miss its figures.
func TestShow_End(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-seconds", "0.5"}, &out))
	require.Len(t, rows(out.String()), 6, out.String())
	require.Regexp(t, `The server did its work|MISSED`, out.String())
}

// rows returns the lines of the table.
func rows(text string) []string {
	return regexp.MustCompile(`(?m)^[a-z, -]+ +\d+×  .*$`).FindAllString(text, -1)
}

// Missed figures are printed.
func TestShow_MissedFigures(t *testing.T) {
	slow := &load{measure: time.Second, inTime: 899, answered: [2]latencies{1: {time.Second}}}
	good := &load{measure: time.Second, inTime: 900, answered: [2]latencies{1: {takes + 2*time.Millisecond}}}
	var out bytes.Buffer
	s := &show{out: &out, capacity: 1000, unloaded: time.Millisecond, results: []result{{reaction: "a", times: 2, load: good}, {reaction: "b", times: 10, load: slow}}}
	require.Equal(t, []string{"b, 10×: 89.9 % of the capacity was used, and 90 should be", "b, 10×: urgent calls took 1s, and 4ms should be enough"}, s.judge())
	require.Contains(t, out.String(), "MISSED: b, 10×: urgent calls took 1s")
	s.results = s.results[:1]
	require.Empty(t, s.judge())
	require.Contains(t, out.String(), "The server did its work")
}

// Impossible figures are an error.
func TestShow_Impossible(t *testing.T) {
	with := func(refused int64, r result) result {
		r.load = new(load)
		r.load.refused.Store(refused)
		return r
	}
	for _, c := range []struct {
		of   result
		want string
	}{
		{with(0, result{times: 10}), ""},
		{with(1, result{times: 10}), "1 calls were refused"},
		{with(1, result{times: 10, refuses: true, waiting: maxWaiting + 1}), ""},
		{with(1, result{times: 10, refuses: true, waiting: maxWaiting + 2}), "34 calls of one session waited"},
	} {
		if c.want == "" {
			require.NoError(t, c.of.check())
		} else {
			require.ErrorContains(t, c.of.check(), c.want)
		}
	}
}

// A failed call ends the show.
func TestShow_FailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reactions()[0]
		st, err := newStage(t.Context(), "mem://overload", r)
		require.NoError(t, err)
		defer st.close()
		time.AfterFunc(50*time.Millisecond, func() { st.sessions[2].Close() })
		l := &load{stage: st, reaction: r, rate: nominal / 2, measure: 100 * time.Millisecond}
		require.ErrorIs(t, l.run(t.Context()), asterisque.ErrSessionClosed)
	})
}

// An interrupt ends the show at once.
func TestShow_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer interrupt()
	require.ErrorIs(t, run(ctx, []string{"-seconds", "3600"}, io.Discard), context.DeadlineExceeded)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":             {"-x"},
		`"hello" is not a flag`:       {"hello"},
		"0 is outside 0.5..3600":      {"-seconds", "0"},
		"NaN is outside 0.5..3600":    {"-seconds", "NaN"},
		`invalid value "soon" for fl`: {"-seconds", "soon"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out))
	require.Contains(t, out.String(), "-seconds N")
	require.Contains(t, out.String(), "-strict")
}

func TestPercentiles(t *testing.T) {
	var l latencies
	require.Zero(t, l.percentile(99))
	for i := range 100 {
		l = append(l, time.Duration(100-i)*time.Millisecond)
	}
	require.Equal(t, 50*time.Millisecond, sorted(l).percentile(50))
	require.Equal(t, 99*time.Millisecond, sorted(l).percentile(99))
	require.Equal(t, "12s", round(12345*time.Millisecond).String())
	require.Equal(t, "120ms", round(123456*time.Microsecond).String())
	require.Equal(t, "4.3ms", round(4321*time.Microsecond).String())
}
