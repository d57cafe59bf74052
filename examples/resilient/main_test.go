package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestShow_NothingLost relies on the program to fail by itself when a call is lost or runs twice,
// and checks its output.
func TestShow_NothingLost(t *testing.T) {
	var out, warned bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-for", "4s"}, &out, &warned))
	require.Empty(t, warned.String())
	text := out.String()
	for _, want := range []string{
		`nothing yet`, `cut +`, `stands still for a moment`, `swallows everything`, `the end`,
		`calls made +([\d,]+)\ncalls answered +`, `calls doubled +0\n`, `calls lost +0\n`, `connections lost +[2-9]`, `sessions +1\n`,
	} {
		require.Regexp(t, want, text)
	}
	totals := regexp.MustCompile(`(?:made|answered) +([\d,]+)`).FindAllStringSubmatch(text, -1)
	require.Len(t, totals, 2)
	require.Equal(t, totals[0][1], totals[1][1])
	require.NotEqual(t, "0", totals[0][1])
}

// The server detects lost and repeated calls.
func TestServer_LostOrDoubled(t *testing.T) {
	s := new(server)
	call := func(n uint64) error { _, err := s.count(t.Context(), order{Caller: 1, N: n}); return err }
	require.NoError(t, call(1))
	require.NoError(t, call(2))
	require.Zero(t, s.doubled.Load()+s.skipped.Load())
	require.Error(t, call(2))
	require.EqualValues(t, 1, s.doubled.Load())
	require.NoError(t, call(5))
	require.EqualValues(t, 2, s.skipped.Load())
	_, err := s.count(t.Context(), order{Caller: callers})
	require.Error(t, err)
}

// An interrupt ends the show.
func TestShow_Interrupt(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer interrupt()
	var out bytes.Buffer
	require.ErrorIs(t, run(ctx, []string{"-for", "1h"}, &out, io.Discard), context.DeadlineExceeded)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":               {"-x"},
		`"hello" is not a flag`:         {"hello"},
		"0s is outside 1s..168h":        {"-for", "0s"},
		`invalid value "long" for flag`: {"-for", "long"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out, io.Discard))
	require.Contains(t, out.String(), "-for DURATION")
}

// Numbers are formatted for readers.
func TestFormat_Numbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		require.Equal(t, want, thousands(n))
	}
	for d, want := range map[time.Duration]string{123456 * time.Nanosecond: "120µs", 12345 * time.Microsecond: "12ms", 1234 * time.Millisecond: "1.2s"} {
		require.Equal(t, want, short(d))
	}
}
