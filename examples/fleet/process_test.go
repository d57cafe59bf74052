package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// startNATS starts a part, and returns the errors that its function fail receives.
func startNATS(t *testing.T) (p *process, failed chan error) {
	failed = make(chan error, 1)
	p, err := startProcess(t.Context(), "nats", func(err error) { failed <- err }, "-part", "nats", "-dir", t.TempDir())
	require.NoError(t, err)
	return p, failed
}

// A process that ends by itself is reported.
func TestProcess_EndsItself(t *testing.T) {
	p, failed := startNATS(t)
	require.NoError(t, p.cmd.Process.Kill())
	require.ErrorContains(t, <-failed, "nats has ended: ")
	require.NoError(t, p.stop(t.Context()), "once is enough")
}

// A process ends with its parent.
func TestProcess_EndsWithParent(t *testing.T) {
	p, failed := startNATS(t)
	require.NoError(t, p.stdin.Close()) // as the system does with all that is open
	require.ErrorContains(t, <-failed, "nats has ended: exit status 0")
}

// A stopped process is not reported.
func TestProcess_Stop(t *testing.T) {
	stopped, failed := startNATS(t)
	require.NoError(t, stopped.stop(t.Context()))
	require.Empty(t, failed)
	killed, failed := startNATS(t)
	killed.kill()
	require.NoError(t, killed.stop(t.Context()))
	require.Empty(t, failed)
}

// A process that cannot start returns the reason.
func TestProcess_CannotStart(t *testing.T) {
	_, err := startProcess(t.Context(), "control", func(error) {}, "-part", "control", "-nats", "nats://127.0.0.1:1")
	require.ErrorContains(t, err, "control has ended: exit status 1\nfleet: cluster: connecting to NATS: ")
}
