package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// facts returns the numbers in s that match the groups of expr.
func facts(t *testing.T, expr, s string) (n []float64) {
	t.Helper()
	m := regexp.MustCompile(expr).FindStringSubmatch(s)
	require.NotNil(t, m, "no %q in:\n%s", expr, s)
	for _, group := range m[1:] {
		f, err := strconv.ParseFloat(group, 64)
		require.NoError(t, err)
		n = append(n, f)
	}
	return n
}

// TestRun_AllAccountedFor relies on the program to fail by itself when a reading is missing, and
// checks its output.
func TestRun_AllAccountedFor(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-seconds", "1.5"}, &out))
	line := `(?m)^ 1\.\d s \| +[1-9]\d+ +[1-9]\d+ \| +0\.\d\d \| +[1-9]\d +[\d.]+ms +[\d.]+ms \| congested \| .*[1-9]\d+ thinned$`
	require.Regexp(t, line, out.String(), "a line a second")

	n := facts(t, `sensor +(\d+) readings: (\d+) sent, (\d+) refused`, out.String())
	offered, sent, refused := n[0], n[1], n[2]
	n = facts(t, `(\d+) delivered \+ (\d+) skipped = (\d+)`, out.String())
	delivered, skipped, sum := n[0], n[1], n[2]
	dropped := facts(t, `(\d+) thinned; too old on arrival: (\d+)`, out.String())
	require.Equal(t, offered, sent+refused)
	require.Equal(t, sent, delivered+skipped)
	require.Equal(t, sent, sum)
	require.Positive(t, delivered)
	require.Positive(t, dropped[0], "the link is too slow for all")
	require.LessOrEqual(t, dropped[0], sent*readingLoss/127, "the loss rate is never exceeded")
	require.Positive(t, facts(t, `upload +([\d.]+) MB, SHA-256 [0-9a-f]{8}`, out.String())[0])
	n = facts(t, `commands +(\d+) given, (\d+) answered`, out.String())
	require.Positive(t, n[0])
	require.Equal(t, n[0], n[1])
	require.Contains(t, out.String(), "Every reading is accounted for")
}

// Readings expire on a link that is too slow for half of them.
func TestReadings_Expire(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for range 5 {
		// A busy machine may measure so few calls that half of them do not overload the link.
		out.Reset()
		require.NoError(t, run(t.Context(), []string{"-seconds", "0.8", "-mbit", "1"}, &out))
		if strings.Contains(out.String(), " expired, ") {
			break
		}
	}
	require.Positive(t, facts(t, `: (\d+) expired, \d+ thinned`, out.String())[0])
}

// The summary fails if something is missing.
func TestSummary_Missing(t *testing.T) {
	for want, spoil := range map[string]func(r *report){
		"10 readings were sent, and 9 are accounted for":       func(r *report) { r.client.tally.Delivered-- },
		"5 readings were dropped, and the receiver knows of 4": func(r *report) { r.drops.note(nil, asterisque.Drop{Reason: asterisque.DropThinned}) },
		"2 commands were given, and 1 answered":                func(r *report) { r.client.orders.Add(1) },
		"11 readings were sent, and 10 are accounted for":      func(r *report) { r.client.sent.Add(1) },
		"10 readings were sent, and 11 are accounted for":      func(r *report) { r.client.tally.Skipped++ },
	} {
		t.Run(want, func(t *testing.T) {
			r := &report{out: io.Discard, server: new(server), client: &client{tally: tally{Delivered: 6, Skipped: 4}}, drops: new(drops)}
			r.client.sent.Store(10)
			r.client.orders.Store(1)
			r.client.answers.note(time.Millisecond)
			for range 4 {
				r.drops.note(nil, asterisque.Drop{Reason: asterisque.DropExpired})
			}
			require.NoError(t, r.sum())
			spoil(r)
			require.EqualError(t, r.sum(), want)
		})
	}
}

// A reading out of order is an error.
func TestReadings_OutOfOrder(t *testing.T) {
	five := make([]byte, readingSize)
	binary.BigEndian.PutUint64(five, 5)
	for _, next := range []uint64{0, 5} {
		number, err := check(five, next)
		require.NoError(t, err)
		require.Equal(t, uint64(5), number)
	}
	_, err := check(five, 6)
	require.EqualError(t, err, "reading 5 has come where 6 was due")
	_, err = check(nil, 0)
	require.EqualError(t, err, "a reading has 0 bytes, want 512")
}

// A link transfers at its rate.
func TestLink_Rate(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go io.Copy(io.Discard, there) // ends with the pipe
	l := &link{Conn: here, rate: 1e6, closed: make(chan struct{})}
	begin := time.Now()
	n, err := l.Write(make([]byte, 100_000))
	took := time.Since(begin)
	require.NoError(t, err)
	require.Equal(t, 100_000, n)
	require.Greater(t, took, 100*time.Millisecond-2*slack)
	require.NoError(t, l.Close())
}

// Close ends a wait of the link.
func TestLink_CloseEndsWait(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	l := &link{Conn: here, rate: 1, closed: make(chan struct{}), free: time.Now().Add(time.Hour)}
	ended := make(chan error)
	go func() {
		_, err := l.Write([]byte("never"))
		ended <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

// An interrupt ends the run at once.
func TestRun_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer interrupt()
	require.ErrorIs(t, run(ctx, []string{"-seconds", "3600"}, io.Discard), context.DeadlineExceeded)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":             {"-x"},
		`"hello" is not a flag`:       {"hello"},
		"0 is outside 0.1..3600":      {"-seconds", "0"},
		"NaN is outside 0.1..3600":    {"-seconds", "NaN"},
		"0.5 is outside 1..1000":      {"-mbit", "0.5"},
		`invalid value "fast" for fl`: {"-mbit", "fast"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out))
	require.Contains(t, out.String(), "-seconds N")
	require.Contains(t, out.String(), "-mbit N")
}
