package guard_test

import (
	"bytes"
	"log/slog"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestRun_ReportsReturn(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	require.True(t, guard.Run(log, "callback", func() {}))
	require.Empty(t, text.String())
	require.False(t, guard.Run(log, "callback", func() { panic("oops") }, "key", 1))
	require.Contains(t, text.String(), "callback panicked")
	require.Contains(t, text.String(), "key=1")
	require.Contains(t, text.String(), "panic=oops")
	require.Contains(t, text.String(), "guard_test.go", "the log has the stack")
}

func TestRun_GoexitDoesNotReturn(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	over, returned := make(chan struct{}), false
	go func() {
		defer close(over)
		guard.Run(log, "callback", runtime.Goexit)
		returned = true
	}()
	<-over
	require.False(t, returned)
	require.Contains(t, text.String(), "callback ended its goroutine")
}

func TestMisbehaved_IsErrPanicked(t *testing.T) {
	a := guard.Misbehaved(slog.New(slog.DiscardHandler), "tracer", "oops")
	require.ErrorIs(t, a, codec.ErrPanicked)
	require.Equal(t, "tracer panicked", a.Message)
}

// panics is a Wire with methods that panic.
type panics struct{ wire.Wire }

func (panics) RemoteAddr() net.Addr { panic("oops") }
func (panics) Close() error         { panic("oops") }

func TestRemoteOf_PanickingWire(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	w := panics{}
	require.False(t, guard.IsSocket(w))
	require.Nil(t, guard.RemoteOf(log, w))
	guard.Apart(log, w, func() { w.Close() })
}
