package testkit

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/stretchr/testify/require"
)

// Logged collects the log of a node.
type Logged struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *Logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *Logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Option makes a node log to l.
func (l *Logged) Option() asterisque.Option {
	return asterisque.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// LineWith returns the line of the log that contains text.
func (l *Logged) LineWith(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	require.Fail(t, "no line has it", "%s in %s", text, l)
	return ""
}
