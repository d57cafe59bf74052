package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// enough is the time limit for an event that happens soon.
const enough = 2 * time.Minute

// screen is the output of a program.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// running runs the program until the test ends, and returns its output and the URL of its listener.
func running(t *testing.T, args ...string) (out *screen, url string) {
	t.Helper()
	out = new(screen)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	args = append(args, "-listen", "tcp://127.0.0.1:0")
	go func() { over <- run(ctx, args, out, io.Discard) }() // ends with ctx
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-over)
	})
	at := regexp.MustCompile(`accepts nodes at (\S+)`)
	require.Eventually(t, func() bool {
		m := at.FindStringSubmatch(out.String())
		if m != nil {
			url = m[1]
		}
		return m != nil
	}, enough, time.Millisecond)
	return out, url
}

func TestRun_WithoutPolicy(t *testing.T) {
	out, url := running(t, "-alone", "-id", "plant")
	require.Eventually(t, func() bool {
		return regexp.MustCompile("plant accepts nodes .*\n.*NO NODE may reach another one").MatchString(out.String())
	}, enough, time.Millisecond)
	a, err := agent.Join(t.Context(), agent.Config{Exchange: []string{url}, Name: "orders"})
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

func TestRun_InCluster(t *testing.T) {
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	file := filepath.Join(t.TempDir(), "policy")
	require.NoError(t, os.WriteFile(file, []byte("* -> orders\n"), 0o600))
	out, _ := running(t, "-nats", b.URL(), "-policy", file)
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`(?s)in the cluster main.*may reach: "\*" -> "orders"`).MatchString(out.String())
	}, enough, time.Millisecond)
}

func TestRun_WrongArguments(t *testing.T) {
	file, none := filepath.Join(t.TempDir(), "policy"), filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(file, []byte("a to b\n"), 0o600))
	require.NoError(t, os.WriteFile(none, []byte("# a -> b\n"), 0o600))
	for want, args := range map[string][]string{
		"-h explains":                {"-what"},
		"is not a flag":              {"what"},
		"-cert and -key go together": {"-cert", "x"},
		"-ca needs -cert and -key":   {"-ca", "x"},
		"-nats goes without -alone":  {"-alone", "-nats", "x"},
		"line 1 of the policy":       {"-alone", "-policy", file},
		"has no rule":                {"-alone", "-policy", none},
		"nothing is encrypted":       {"-listen", "tcp://:5330", "-cert", "x", "-key", "y"},
		"1 at least":                 {"-per-node", "0"},
		"scheme":                     {"-listen", "what://x"},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), want)
	}
	var help bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-h"}, &help, io.Discard))
	require.Contains(t, help.String(), "-per-node N")
}
