package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestShow_End relies on the show to fail by itself when a limit does not hold, and checks its
// output.
func TestShow_End(t *testing.T) {
	var out, warned bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-seconds", "1"}, &out, &warned))
	require.Empty(t, warned.String(), "nothing is out of order")

	parts := regexp.MustCompile(`(?m)^\d\. `).Split(out.String(), -1)
	require.Len(t, parts, 4)
	windows, soft, hard := rows(parts[1]), rows(parts[2]), rows(parts[3])
	require.GreaterOrEqual(t, len(windows)+len(soft)+len(hard), beats)
	last := windows[len(windows)-1]
	require.NotContains(t, last, "soft", "windows keep a session from its limits")
	require.Regexp(t, `  [1-9]\d* +[\d.]+(µs|ms) `, last, "calls continue beside the slow pipe")
	asleep, _, ok := strings.Cut(parts[2], "wakes up:")
	require.True(t, ok)
	last = rows(asleep)[len(rows(asleep))-1]
	require.Equal(t, 2, strings.Count(last, " soft"), "both sides are at their soft limits: %s", last)
	require.Contains(t, last, "     0       -       -", "and calls wait")
	require.Regexp(t, `hard.*soft`, hard[len(hard)-3], "the sender ignored its soft limit, the consumer's session did not")
	for _, told := range []string{"by Post: +asterisque: hard limit reached", "by Result: +asterisque: hard limit reached", "by Recv: +asterisque: (session closed|hard limit reached)"} {
		require.Regexp(t, told, parts[3])
	}
	require.True(t, strings.HasSuffix(out.String(), "It continues.\n"))
}

// rows returns the lines of a table.
func rows(part string) []string {
	return regexp.MustCompile(`(?m)^ *\d+\.\d\d s .*$`).FindAllString(part, -1)
}

// An interrupt ends the show at once.
func TestShow_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer interrupt()
	require.ErrorIs(t, run(ctx, []string{"-seconds", "3600"}, io.Discard, io.Discard), context.DeadlineExceeded)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":             {"-x"},
		`"hello" is not a flag`:       {"hello"},
		"0 is outside 0.1..3600":      {"-seconds", "0"},
		"NaN is outside 0.1..3600":    {"-seconds", "NaN"},
		`invalid value "soon" for fl`: {"-seconds", "soon"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out, io.Discard))
	require.Contains(t, out.String(), "-seconds N")
}

func TestPercentiles(t *testing.T) {
	var l latencies
	require.Equal(t, "-", l.percentile(50))
	for i := range 100 {
		l = append(l, time.Duration(i+1)*time.Millisecond)
	}
	require.Equal(t, "50ms", l.percentile(50))
	require.Equal(t, "99ms", l.percentile(99))
	require.Equal(t, "1.2s", latencies{1234 * time.Millisecond}.percentile(50))
	require.Equal(t, "40µs", latencies{43 * time.Microsecond}.percentile(99))
}
