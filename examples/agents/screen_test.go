package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a terminal the table is overwritten in place.
func TestScreen_Terminal(t *testing.T) {
	var out bytes.Buffer
	sc := newScreen(&out)
	require.False(t, sc.terminal, "what is no file is no terminal")
	sc.terminal = true
	sc.servers = []*server{newServer("a", "", nil, slog.New(slog.DiscardHandler))}
	sc.draw()
	require.NotContains(t, out.String(), "\x1b[3A", "the first one has nothing to draw over")
	for range mostEvents + 5 {
		sc.say("something happens")
	}
	sc.draw()
	require.Contains(t, out.String(), "\x1b[3A", "the second one begins where the first has")
	out.Reset()
	sc.draw()
	require.Contains(t, out.String(), "\x1b[15A")
	require.Equal(t, 3+mostEvents, strings.Count(out.String(), "\n"), "older events leave")
}

// A failure is printed.
func TestScreen_Failure(t *testing.T) {
	var out bytes.Buffer
	sc := newScreen(&out)
	sc.tally = new(tally)
	sc.tally.note(&sc.tally.runs, "first", errors.New("broken"))
	sc.tally.note(&sc.tally.runs, "second", errors.New("too"))
	sc.tally.note(&sc.tally.runs, "third", nil)
	sc.summary()
	require.Contains(t, out.String(), "1 commands were followed")
	require.Contains(t, out.String(), "2 failed\nthe first of them: first: broken\n")
	require.ErrorContains(t, sc.tally.err(), "broken")
}

// Numbers are formatted for readers.
func TestFormat_Numbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		require.Equal(t, want, thousands(n))
	}
}
