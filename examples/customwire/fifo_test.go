//go:build unix

package main

import (
	"context"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// fifos returns the paths of two new named pipes.
func fifos(t *testing.T) (there, back string) {
	dir := t.TempDir()
	there, back = filepath.Join(dir, "there"), filepath.Join(dir, "back")
	require.NoError(t, syscall.Mkfifo(there, 0o600))
	require.NoError(t, syscall.Mkfifo(back, 0o600))
	return there, back
}

// The Wire passes the suite over named pipes.
func TestLineWire_NamedPipes(t *testing.T) {
	wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) {
		there, back := fifos(t)
		opened := make(chan wire.Wire)
		go func() { // ends when both sides are open
			w, err := open(there, back, true)
			if err != nil {
				t.Error(err)
			}
			opened <- w
		}()
		a, err := open(back, there, false)
		require.NoError(t, err)
		return a, <-opened
	})
}

// Two processes meet over named pipes.
func TestNamedPipes_Processes(t *testing.T) {
	there, back := fifos(t)
	ended := make(chan error)
	var answerer transcript
	go func() { ended <- run(t.Context(), []string{"-answer", "-in", there, "-out", back}, &answerer) }()
	var caller transcript
	require.NoError(t, run(t.Context(), []string{"-in", back, "-out", there}, &caller))
	require.NoError(t, <-ended)
	requireConversation(t, caller.String())
	require.Contains(t, answerer.String(), "→ caller")
}

// An interrupt ends the wait for the other process.
func TestNamedPipes_Interrupt(t *testing.T) {
	there, back := fifos(t)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, []string{"-answer", "-in", there, "-out", back}, io.Discard) }()
	interrupt()
	require.ErrorIs(t, <-ended, context.Canceled)
	releaseOpen(t, there, back)
}

// releaseOpen opens the other ends, so that the goroutine that waits for them ends.
func releaseOpen(t *testing.T, there, back string) {
	w, err := open(back, there, false)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
