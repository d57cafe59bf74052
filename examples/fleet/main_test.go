package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

// TestMain runs the tests, or acts as a part of the fleet that a test has started.
func TestMain(m *testing.M) {
	if os.Getenv(startedBy) != "" {
		main()
		return
	}
	// With the race detector a program exits after a second by default; the option makes it exit at
	// once.
	os.Setenv("GORACE", "atexit_sleep_ms=0 exitcode=66")
	leak.Main(m)
}

func TestFlags_Invalid(t *testing.T) {
	for want, args := range map[string][]string{
		"-x; -h explains":                                     {"-x"},
		`"hello" is not a flag`:                               {"hello"},
		"-for: 1s is outside 2s..1h":                          {"-for", "1s"},
		`invalid value "long" for flag -for`:                  {"-for", "long"},
		"-replicas: 1 is outside 2..20":                       {"-replicas", "1"},
		"-agents: 501 is outside 1..500":                      {"-agents", "501"},
		"-servers: 2 is neither 1 nor 3":                      {"-servers", "2"},
		`-part: "depot" is none of nats, replica, exchange`:   {"-part", "depot"},
		"-listen a:1 does not go without -part":               {"-listen", "a:1"},
		"-agents 3 does not go with -part replica":            {"-part", "replica", "-agents", "3"},
		"-part replica needs -nats":                           {"-part", "replica"},
		`-nats: "here" is no URL such as nats://127.0.0.1:4`:  {"-part", "control", "-nats", "nats://a:1,here"},
		`-listen: "4222" is no host:port`:                     {"-part", "nats", "-listen", "4222"},
		`-id: "a b" has other than`:                           {"-part", "nats", "-id", "a b"},
		"-at and -routes go together":                         {"-part", "nats", "-at", "a:1"},
		"-at and -routes need -id":                            {"-part", "nats", "-at", "a:1", "-routes", "a:1"},
		"-at: c:3 is none of -routes a:1,b:2":                 {"-part", "nats", "-id", "a", "-at", "c:3", "-routes", "a:1,b:2"},
		"-part exchange needs -secret":                        {"-part", "exchange", "-nats", "nats://a:1"},
		"-exchange and -secret go together":                   {"-part", "agents", "-nats", "nats://a:1", "-exchange", "tcp://a:1"},
		`-exchange: "a:1" is no URL such as tcp://127.0.0.1:`: {"-part", "agents", "-nats", "nats://a:1", "-exchange", "a:1", "-secret", "x"},
		`-door: "a" is no URL such as tcp://127.0.0.1:`:       {"-part", "agents", "-nats", "nats://a:1", "-door", "a"},
		`-at: "a" is no host:port`:                            {"-part", "replica", "-nats", "nats://a:1", "-at", "a"},
		"-door tcp://a:1 does not go with -part exchange":     {"-part", "exchange", "-door", "tcp://a:1"},
		`-routes: "b" is no host:port`:                        {"-part", "nats", "-id", "a", "-at", "a:1", "-routes", "a:1,b"},
		"no servers available":                                {"-part", "control", "-nats", "nats://127.0.0.1:1"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want, args)
	}
}

func TestHelp_EveryFlag(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &out, io.Discard))
	for _, name := range []string{
		"-for DURATION", "-replicas N", "-agents N", "-servers N", "-part PART", "-nats URL",
		"-listen ADDR", "-dir DIR", "-id NAME", "-at ADDR", "-routes A,B,C",
		"-exchange URL", "-secret TEXT", "-door URL",
	} {
		require.Contains(t, out.String(), name)
	}
}

// private puts all temporary folders of a test into a separate one, and returns that.
func private(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

// nothingIsLeft fails t if the folder is not empty.
func nothingIsLeft(t *testing.T, dir string) {
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
