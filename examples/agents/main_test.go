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

// TestAgents_Restarts relies on the program to fail by itself when a call fails during the
// restarts, and checks its output.
func TestAgents_Restarts(t *testing.T) {
	t.Parallel()
	var out, warned bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-for", "1s", "-agents", "10"}, &out, &warned), &out)
	require.Empty(t, warned.String())
	for _, want := range []string{
		`10 agents have a session with each server, 30 in all`,
		`server a drains`, `server a is new`, `server b drains`, `server b is new`, `server c drains`, `server c is new`,
		`(?m)^a +serving +10 .*\nb +serving +10 .*\nc +serving +10 .* 0\n`,
		`[1-9]\d* calls of agents`, `[1-9]\d* calls of the controller`, `[1-9]\d* commands were followed`,
		`[1-9]\d* commands were cancelled`, `[1-9]\d* endless streams went on`, `3 restarts`, `(?m)^ +0 failed$`,
	} {
		require.Regexp(t, want, out.String())
	}
}

// An interrupt ends the program gracefully.
func TestAgents_Interrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer time.AfterFunc(300*time.Millisecond, interrupt).Stop()
	var out bytes.Buffer
	require.ErrorIs(t, run(ctx, []string{"-for", "1h", "-agents", "3"}, &out, io.Discard), context.Canceled)
	require.Regexp(t, regexp.MustCompile(`(?m)^ +0 failed$`), out.String(), "what runs is finished")
}

func TestFlags_Invalid(t *testing.T) {
	named := []string{"-cert", "c", "-key", "k", "-ca", "a"}
	for want, args := range map[string][]string{
		"-x; -h explains":                 {"-x"},
		`"hello" is not a flag`:           {"hello"},
		"-for: 0s is outside 1s..24h":     {"-for", "0s"},
		"-agents: 0 is outside 1..1000":   {"-agents", "0"},
		"-agents: 1001 is outside":        {"-agents", "1001"},
		"-server and -agent are for one":  {"-server", "a:1", "-agent"},
		"-write-certs goes without":       {"-server", "a:1", "-write-certs", "x"},
		"-agent and -servers go together": {"-agent"},
		"-cert, -key and -ca are needed":  {"-server", "a:1"},
		"-cert, -key and -ca go with":     {"-cert", "a"},
		"certificate: c with key k":       append([]string{"-server", "a:1"}, named...),
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out, io.Discard))
	for _, name := range []string{"-for DURATION", "-agents N", "-write-certs DIR", "-server ADDR", "-servers A,B,C", "-cert FILE", "-key FILE", "-ca FILE"} {
		require.Contains(t, out.String(), name)
	}
}
