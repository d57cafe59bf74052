package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// transcript is the printed text. The program locks it.
type transcript struct{ bytes.Buffer }

// One process shows the conversation and its frames.
func TestOneProcess(t *testing.T) {
	var out transcript
	require.NoError(t, run(t.Context(), nil, &out))
	requireConversation(t, out.String())
	require.Contains(t, out.String(), "→ caller    Open")
	require.Contains(t, out.String(), "→ caller    Close")
}

// requireConversation checks the output of the calling side.
func requireConversation(t *testing.T, out string) {
	t.Helper()
	require.Regexp(t, `(?s)→ answerer  Control .*morse\("sos"\).*→ answerer  Open .*  beep: ··· −−− ···\n.*→ answerer  Close .*  is  "··· −−− ···"\n.*morse\("asterisk"\)`, out)
	require.NotContains(t, out, "?", "every frame is of a known kind")
}

func TestFlags_Invalid(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for want, args := range map[string][]string{
		"-x; -h explains":       {"-x"},
		`"hello" is not a flag`: {"hello"},
		"-in and -out go":       {"-in", missing},
		"-answer goes with":     {"-answer"},
		missing:                 {"-in", missing, "-out", missing},
	} {
		require.ErrorContains(t, run(t.Context(), args, io.Discard), want)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(interrupted, nil, io.Discard))
}

func TestHelp_EveryFlag(t *testing.T) {
	var out transcript
	require.NoError(t, run(t.Context(), []string{"-h"}, &out))
	for _, name := range []string{"-in PATH", "-out PATH", "-answer", "mkfifo"} {
		require.Contains(t, out.String(), name)
	}
}

// The second byte of a frame determines the name of its message.
func TestTap_MessageType(t *testing.T) {
	for want, frame := range map[string][]byte{"Control": {0x82, 0}, "Open": {0x85, 1}, "Block": {0x83, 2}, "Close": {0x84, 3}, "?": {0x84}} {
		require.Equal(t, want, kind(frame))
	}
}
