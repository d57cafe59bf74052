package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// Records of one kind are logged at a bounded rate.
func TestLogs_BoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testkit.Logged)
		node := asterisque.NewNode(log.Option())
		defer node.Close()
		l := node.Logger()
		for range 25 {
			l.Warn("a")
		}
		l.Info("a")
		l.With("b", 1).Warn("a")
		require.Equal(t, 10, strings.Count(log.String(), "level=WARN msg=a"))
		require.Contains(t, log.String(), "level=INFO msg=a", "another level is another kind")
		require.NotContains(t, log.String(), "more=")

		fakeclock.Sleep(time.Second)
		l.With("b", 1).Warn("a", "c", 2)
		require.Contains(t, log.String(), "b=1 c=2 more=16")
		l.Warn("a", "c", 3)
		require.Equal(t, 1, strings.Count(log.String(), "more="), "their number is logged once")

		for i := range 1000 {
			l.Error(fmt.Sprint("text", i))
		}
		require.LessOrEqual(t, strings.Count(log.String(), "level=ERROR"), 256+10, "texts without number are one kind in the end")
	})
}

// Log lines are short.
func TestLogs_Short(t *testing.T) {
	log := new(testkit.Logged)
	node := asterisque.NewNode(log.Option())
	defer node.Close()
	long := strings.Repeat("x", 2000)
	cut := long[:1024]
	node.Logger().Warn("m", "text", long, "error", errors.New(long), slog.Group("g", slog.String("inner", long)), "stack", long)
	node.Logger().With("before", long).Info("n", "error", errors.New("short"))
	node.Logger().Info(strings.Repeat("y", 2000))
	require.Equal(t, 1024, strings.Count(log.String(), "y"))
	for _, want := range []string{" text=" + cut + " ", " error=" + cut + " ", " g.inner=" + cut + " ", " stack=" + long + "\n", " before=" + cut + " ", " error=short\n"} {
		require.Contains(t, log.String(), want)
	}
}

// panicsAt is a slog.Handler one method of which panics.
type panicsAt struct {
	slog.Handler
	method string
}

func (p panicsAt) at(method string) {
	if method == p.method {
		panic("logging failed")
	}
}

func (p panicsAt) Enabled(context.Context, slog.Level) bool  { p.at("Enabled"); return true }
func (p panicsAt) Handle(context.Context, slog.Record) error { p.at("Handle"); return nil }
func (p panicsAt) WithAttrs([]slog.Attr) slog.Handler        { p.at("WithAttrs"); return p }
func (p panicsAt) WithGroup(string) slog.Handler             { p.at("WithGroup"); return p }

// A log handler that panics ends nothing else.
func TestLogs_PanickingHandler(t *testing.T) {
	for _, method := range []string{"Enabled", "Handle", "WithAttrs", "WithGroup"} {
		handler := panicsAt{slog.NewTextHandler(new(bytes.Buffer), nil), method}
		here := asterisque.NewNode(asterisque.WithLogger(slog.New(handler)))
		there := asterisque.NewNode(asterisque.WithLogger(slog.New(handler)), asterisque.WithService(testkit.EchoService()))
		dialled, _ := asterisquetest.ConnectNodes(t, here, there)
		_, err := testkit.Echo.Call(testkit.Background, dialled, "x")
		require.NoError(t, err, method)
		require.NotPanics(t, func() { here.Logger().WithGroup("g").With("a", 1).Warn("m") }, method)
		require.NoError(t, here.Close())
		require.NoError(t, there.Close())
	}
}

// Records below the log level cost nothing.
func TestLogs_DisabledCostNothing(t *testing.T) {
	node := asterisque.NewNode()
	defer node.Close()
	l := node.Logger()
	require.False(t, l.Enabled(testkit.Background, slog.LevelError))
	require.Zero(t, testing.AllocsPerRun(100, func() { l.Error("m") }))
	_, err := asterisque.NewNode(asterisque.WithLogger(nil)).Dial(testkit.Background, "tcp://127.0.0.1:1")
	require.ErrorContains(t, err, "WithLogger: the logger is nil")
}

// TestAttackLogs_StaySmall uses peers that provoke log lines, as many and as long as they can.
func TestAttackLogs_StaySmall(t *testing.T) {
	goodbye := func(size int) []byte {
		frame, err := cbor.Marshal([]any{0, 7, 1, strings.Repeat("\x01", size)})
		require.NoError(t, err)
		return frame
	}
	for name, c := range map[string]struct {
		peers, kinds int
		first        []byte // what a peer says instead of its Sync
		then         []byte // what it says after its Sync
	}{
		"handshakes": {300, 1, goodbye(8000), nil},
		"violations": {300, 4, nil, []byte{0xff}},
		"farewells":  {30, 3, nil, goodbye(60 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(testkit.Logged)
				node := asterisque.NewNode(log.Option())
				defer node.Close()
				ln, err := wire.Listen(testkit.Background, "mem://logs-"+name, wire.Options{})
				require.NoError(t, err)
				go node.Serve(testkit.Background, ln)
				for range c.peers {
					w, err := wire.Dial(testkit.Background, ln.URL(), wire.Options{})
					require.NoError(t, err)
					p := &testkit.RawPeer{T: t, W: w}
					if c.first != nil {
						p.SendFrame(c.first)
					} else {
						p.Send(testkit.Hello())
						p.Control()
						p.SendFrame(c.then)
					}
					synctest.Wait()
					w.Close()
				}
				synctest.Wait()
				attack.Bounded(t, name+" of a second: bytes of log", len(log.String()), c.kinds*10*(4*1024+512))
				require.LessOrEqual(t, strings.Count(log.String(), "\n"), c.kinds*10)
			})
		})
	}
}
